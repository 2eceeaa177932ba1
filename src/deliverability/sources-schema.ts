import type { Static } from 'typebox'
import { definitionKey } from '../organizations/definition-schema.ts'
import { nullable, Type, time } from '../values/json-schema.ts'

export const providers = ['ses', 'sendgrid', 'mailgun', 'postmark'] as const
export type Provider = (typeof providers)[number]

const provider = Type.Enum([...providers], { description: 'Amazon SES by SNS, SendGrid, Mailgun or Postmark.' })

/** Body of POST /v1/deliverability/sources. */
export const newSource = Type.Object(
  {
    key: definitionKey,
    provider,
    public_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_024,
        description: 'Of SendGrid: the verification key of the signed event webhook.',
      }),
    ),
    secret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description:
          'Of Mailgun: the HTTP webhook signing key. Of Postmark, if it is to send them: the user and the password, with a colon between them.',
      }),
    ),
    topic_arn: Type.Optional(
      Type.String({
        pattern: '^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\\.fifo)?$',
        description: 'Of SES: the topic of SNS. kith confirms the subscription of this topic only.',
      }),
    ),
  },
  {
    additionalProperties: false,
    title: 'DeliverabilitySourceBody',
    examples: [{ key: 'newsletter', provider: 'postmark' }],
  },
)
export type SourceBody = Static<typeof newSource>
export type SecretName = Exclude<keyof SourceBody, 'key' | 'provider'>

/** A source as reads show it. */
export const source = Type.Object(
  {
    key: Type.String(),
    provider,
    path: Type.String({
      description:
        'Where the provider sends its events: the path after the public address of kith. Keep it secret; it is what protects a source of Postmark without a password.',
    }),
    created_at: time(),
    last_event_at: nullable(time('When it last sent events with a valid signature.')),
    ignored_events: Type.Integer({
      minimum: 0,
      description: 'How many events it sent that kith has no use for, such as opened messages. They are not stored.',
    }),
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
    stored: Type.Integer({ minimum: 0, description: 'The events that changed something.' }),
    ignored: Type.Integer({ minimum: 0, description: 'The events that kith has no use for, such as opened messages.' }),
  },
  { title: 'ReceivedEvents', examples: [{ stored: 1, ignored: 0 }] },
)
