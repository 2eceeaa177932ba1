import type { Static } from 'typebox'
import { deliveryEventTypes, suppressionReasons } from '../consents/deliverability-state.ts'
import { definitionKey } from '../organizations/definition-schema.ts'
import { channels } from '../values/channels.ts'
import {
  closedObject,
  count,
  filledText,
  nullable,
  optionals,
  pageLimit,
  storedNumber,
  Type,
  text,
  time,
} from '../values/json-schema.ts'

const channel = Type.Enum([...channels])

export const eventTypes = [...deliveryEventTypes, 'unsubscribe'] as const

export const deliveryEvent = closedObject(
  {
    channel,
    address: Type.Optional(
      filledText(320, 'An email address, or a phone number with its country. It is compared as it is for duplicates.'),
    ),
    external_id: Type.Optional(
      Type.String({
        format: 'external-id',
        description: 'In place of `address`: the address that the person has now on the channel.',
      }),
    ),
    type: Type.Enum([...eventTypes], {
      description:
        '`hard_bounce`, `soft_bounce`, `complaint` and `delivered` decide whether the address is written to. `unsubscribe` refuses the ' +
        'purposes of the channel for everyone with the address, or the one that `consent_type_id` names. A `complaint` also does that.',
    }),
    at: Type.Optional(
      Type.String({
        format: 'collection-time',
        description:
          'When it happened. The default is now. With it, the same event changes nothing the second time, and events may come in any order.',
      }),
    ),
    ...optionals({
      provider: filledText(64, 'The provider that reports it, such as `ses`.'),
      reference: filledText(255, 'The identifier of the message or of the event there.'),
      consent_type_id: storedNumber('The purpose that an `unsubscribe` refuses. The default is all.'),
    }),
  },
  { title: 'DeliveryEvent' },
)
export type GivenEvent = Static<typeof deliveryEvent>

export const maxEvents = 1_000

/** Body of POST /v1/deliverability. */
export const deliveryEvents = closedObject(
  { events: Type.Array(deliveryEvent, { minItems: 1, maxItems: maxEvents }) },
  {
    title: 'DeliveryEvents',
    examples: [
      {
        events: [
          {
            channel: 'email',
            address: 'ada@example.com',
            type: 'delivered',
            at: '2026-01-01T12:00:00Z',
            provider: 'ses',
          },
        ],
      },
    ],
  },
)
export type DeliveryEventsBody = Static<typeof deliveryEvents>

const cursor = Type.Optional(filledText(400, 'The `next_cursor` of the page before.'))

/** The query of GET /v1/deliverability/events. */
export const eventsQuery = closedObject({
  cursor,
  limit: pageLimit(maxEvents, 'The most addresses of a page. The default is 1,000.'),
})
export type EventsQuery = Static<typeof eventsQuery>

/** The response of GET /v1/deliverability/events. */
export const eventPage = Type.Object(
  { items: Type.Array(deliveryEvent), next_cursor: nullable(text('Null on the last page.')) },
  {
    title: 'DeliveryEventPage',
    examples: [
      {
        items: [{ channel: 'email', address: 'ada@example.com', type: 'hard_bounce', at: '2026-01-01T12:00:00.000Z' }],
        next_cursor: null,
      },
    ],
  },
)
export type EventPageShape = Static<typeof eventPage>

const statusTexts = {
  stored: 'the event changed something',
  unchanged: 'it was known already, or something later counts',
  not_found: 'there is no such person',
  no_address: 'the person has no address on the channel',
  not_an_address: 'the address is none',
  no_purpose: 'nobody can answer the consent type on the channel',
} as const
export type EventStatus = keyof typeof statusTexts

/** The response of POST /v1/deliverability. */
export const eventStatuses = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        {
          status: Type.Enum(Object.keys(statusTexts) as EventStatus[], {
            description: Object.entries(statusTexts)
              .map(([status, text]) => `\`${status}\`: ${text}`)
              .join('; '),
          }),
        },
        { title: 'DeliveryEventStatus' },
      ),
      { description: 'One for each event, in the order of the request.' },
    ),
  },
  { title: 'DeliveryEventStatuses', examples: [{ items: [{ status: 'stored' }] }] },
)

const suppression = Type.Object(
  {
    reason: Type.Enum([...suppressionReasons], { description: 'The type of the event that suppresses the address.' }),
    from: time('When it happened.'),
    until: nullable(time('When it ends by itself. Null: somebody has to lift it.')),
    provider: nullable(text('The provider that reported it.')),
    reference: nullable(text()),
  },
  { title: 'Suppression' },
)

const shown = {
  state: Type.Enum(['deliverable', 'suppressed'], {
    description: '`suppressed`: messages to the address bounced, or were complained about.',
  }),
  suppression: nullable(suppression),
  last_delivered_at: nullable(time('The last delivery that kith was told of.')),
  last_bounced_at: nullable(time('The last bounce since then, hard or soft.')),
  lifted_at: nullable(time('When somebody lifted a suppression last. Events until then do not count.')),
}

const exampleSuppression = {
  reason: 'hard_bounce',
  from: '2026-01-01T12:00:00.000Z',
  until: '2026-06-30T12:00:00.000Z',
  provider: 'ses',
  reference: '0100017f-1',
} as const
const exampleAddress = {
  channel: 'email',
  address: 'ada@example.com',
  state: 'suppressed',
  suppression: exampleSuppression,
  last_delivered_at: null,
  last_bounced_at: exampleSuppression.from,
  lifted_at: null,
} as const

/** The state of a person's address on a channel. */
const personAddress = Type.Object(
  { channel, address: text('The address in its normal form.'), ...shown },
  { title: 'AddressDeliverability' },
)

/** The response of GET /v1/people/{external_id}/deliverability. */
export const personDeliverability = Type.Object(
  { items: Type.Array(personAddress, { description: 'One for each channel on which the person has an address.' }) },
  { title: 'PersonDeliverability', examples: [{ items: [exampleAddress] }] },
)
export type AddressShape = Static<typeof personAddress>

/** The query of GET /v1/deliverability. */
export const suppressionsQuery = closedObject({
  channel: Type.Optional(channel),
  reason: Type.Optional(Type.Enum([...suppressionReasons])),
  search: Type.Optional(filledText(320, 'A part of the address.')),
  cursor,
  limit: pageLimit(1_000, 'The most items of a page. The default is 50.'),
})
export type SuppressionsQuery = Static<typeof suppressionsQuery>

const suppressedAddress = Type.Object(
  {
    channel,
    address: nullable(text('The address in its normal form. Null if its person was erased: kith has its hash.')),
    ...shown,
  },
  { title: 'SuppressedAddress' },
)

/** The response of GET /v1/deliverability. */
export const suppressionPage = Type.Object(
  {
    items: Type.Array(suppressedAddress),
    next_cursor: nullable(text('Null on the last page.')),
  },
  { title: 'SuppressionPage', examples: [{ items: [exampleAddress], next_cursor: null }] },
)
export type SuppressionPageShape = Static<typeof suppressionPage>

const providers = ['ses', 'sendgrid', 'mailgun', 'postmark'] as const
export type Provider = (typeof providers)[number]

const sourceProvider = Type.Enum([...providers], { description: 'Amazon SES by SNS, SendGrid, Mailgun or Postmark.' })

/** Body of POST /v1/deliverability/sources. */
export const newSource = closedObject(
  {
    key: definitionKey,
    provider: sourceProvider,
    public_key: Type.Optional(filledText(1_024, 'For SendGrid: the verification key of the signed event webhook.')),
    secret: Type.Optional(
      filledText(
        255,
        'For Mailgun: the HTTP webhook signing key. For Postmark, if it sends them: the user and the password, with a colon between them.',
      ),
    ),
    topic_arn: Type.Optional(
      Type.String({
        pattern: '^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\\.fifo)?$',
        description: 'For SES: the topic of SNS. kith confirms the subscription of this topic only.',
      }),
    ),
  },
  { title: 'DeliverabilitySourceBody', examples: [{ key: 'newsletter', provider: 'postmark' }] },
)
export type SourceBody = Static<typeof newSource>
export type SecretName = Exclude<keyof SourceBody, 'key' | 'provider'>

/** A source as reads show it. */
export const source = Type.Object(
  {
    key: text(),
    provider: sourceProvider,
    path: text(
      'Where the provider sends its events: the path after the public address of kith. Keep it secret; it is what protects a source of Postmark without a password.',
    ),
    created_at: time(),
    last_event_at: nullable(time('When it last sent events with a valid signature.')),
    ignored_events: count(
      'How many events it sent that kith has no use for, such as opened messages. They are not stored.',
    ),
    confirmed_at: nullable(time('When kith confirmed the subscription of SNS.')),
  },
  {
    title: 'DeliverabilitySource',
    examples: [
      {
        key: 'newsletter',
        provider: 'postmark',
        path: '/v1/deliverability/in/1-0123456789abcdef0123456789abcdef',
        created_at: '2026-01-01T12:00:00.000Z',
        last_event_at: null,
        ignored_events: 0,
        confirmed_at: null,
      },
    ],
  },
)
export type SourceShape = Static<typeof source>

/** The response to a provider. */
export const received = Type.Object(
  {
    stored: count('The events that changed something.'),
    ignored: count('The events that kith has no use for, such as opened messages.'),
  },
  { title: 'ReceivedEvents', examples: [{ stored: 1, ignored: 0 }] },
)
