import type { Static } from 'typebox'
import { deliveryEventTypes, suppressionReasons } from '../consents/deliverability-state.ts'
import { channels } from '../values/channels.ts'
import { nullable, storedNumber, Type, time } from '../values/json-schema.ts'

const channel = Type.Enum([...channels])
const address = Type.String({
  minLength: 1,
  maxLength: 320,
  description: 'An email address, or a phone number with its country. It is compared as it is for duplicates.',
})

export const eventTypes = [...deliveryEventTypes, 'unsubscribe'] as const

const provider = Type.String({ minLength: 1, maxLength: 64, description: 'Who tells it, such as `ses`.' })
const reference = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'The identifier of the message or of the event there.',
})

export const deliveryEvent = Type.Object(
  {
    channel,
    address: Type.Optional(address),
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
    provider: Type.Optional(provider),
    reference: Type.Optional(reference),
    consent_type_id: Type.Optional(storedNumber('The purpose that an `unsubscribe` refuses. The default is all.')),
  },
  { additionalProperties: false, title: 'DeliveryEvent' },
)
export type GivenEvent = Static<typeof deliveryEvent>

export const maxEvents = 1_000

/** Body of POST /v1/deliverability. */
export const deliveryEvents = Type.Object(
  { events: Type.Array(deliveryEvent, { minItems: 1, maxItems: maxEvents }) },
  {
    additionalProperties: false,
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

const cursor = Type.Optional(
  Type.String({ minLength: 1, maxLength: 400, description: 'The `next_cursor` of the page before.' }),
)

/** The query of GET /v1/deliverability/events. */
export const eventsQuery = Type.Object(
  {
    cursor,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxEvents,
        description: 'The most addresses of a page. The default is 1,000.',
      }),
    ),
  },
  { additionalProperties: false },
)
export type EventsQuery = Static<typeof eventsQuery>

/** The response of GET /v1/deliverability/events. */
export const eventPage = Type.Object(
  { items: Type.Array(deliveryEvent), next_cursor: nullable(Type.String({ description: 'Null on the last page.' })) },
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
    provider: nullable(Type.String({ description: 'Who told it.' })),
    reference: nullable(Type.String()),
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

/** What holds for the address of a person on a channel. */
const personAddress = Type.Object(
  { channel, address: Type.String({ description: 'The address in its normal form.' }), ...shown },
  { title: 'AddressDeliverability' },
)

/** The response of GET /v1/people/{external_id}/deliverability. */
export const personDeliverability = Type.Object(
  { items: Type.Array(personAddress, { description: 'One for each channel on which the person has an address.' }) },
  { title: 'PersonDeliverability', examples: [{ items: [exampleAddress] }] },
)
export type AddressShape = Static<typeof personAddress>

/** The query of GET /v1/deliverability. */
export const suppressionsQuery = Type.Object(
  {
    channel: Type.Optional(channel),
    reason: Type.Optional(Type.Enum([...suppressionReasons])),
    search: Type.Optional(Type.String({ minLength: 1, maxLength: 320, description: 'A part of the address.' })),
    cursor,
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000, description: 'The most items of a page. The default is 50.' }),
    ),
  },
  { additionalProperties: false },
)
export type SuppressionsQuery = Static<typeof suppressionsQuery>

const suppressedAddress = Type.Object(
  {
    channel,
    address: nullable(
      Type.String({ description: 'The address in its normal form. Null if its person was erased: kith has its hash.' }),
    ),
    ...shown,
  },
  { title: 'SuppressedAddress' },
)

/** The response of GET /v1/deliverability. */
export const suppressionPage = Type.Object(
  {
    items: Type.Array(suppressedAddress),
    next_cursor: nullable(Type.String({ description: 'Null on the last page.' })),
  },
  { title: 'SuppressionPage', examples: [{ items: [exampleAddress], next_cursor: null }] },
)
export type SuppressionPageShape = Static<typeof suppressionPage>
