import { change } from '../changes/schema.ts'
import { eventsOf, subjects } from '../organizations/logged-changes.ts'
import { channels } from '../values/channels.ts'
import { number, Type, text, time } from '../values/json-schema.ts'
import { eventTypeOf } from './events.ts'

const { sequence, at, subject, id, stack_key, operation, version } = change.properties

/** A change as a webhook with `payload: "ids"` shows it. */
const changeIds = Type.Object(
  { sequence, at, subject, id, stack_key, operation, version },
  { title: 'ChangeIds', description: 'A change without values: of a webhook with `payload: "ids"`.' },
)

const confirmation = Type.Object(
  {
    consent_type_id: number(),
    channel: Type.Enum([...channels]),
    address: text('The current email address, or mobile number, of the person.'),
    confirm_url: text('A link with which the person confirms.'),
  },
  { title: 'Confirmation', description: 'A grant that waits for its confirmation: of a webhook with `links`.' },
)

const timestamp = time('When it happened.')

/** The headers with which a receiver verifies a request. */
export const webhookHeaders = Type.Object(
  {
    'webhook-id': Type.String({
      description: 'The `log_id` and the number of the change, the same in a retry and a replay.',
      examples: ['6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3:1204'],
    }),
    'webhook-timestamp': Type.String({
      pattern: String.raw`^\d+$`,
      description: 'When the request was sent, in seconds since 1970.',
    }),
    'webhook-signature': text(
      'The signatures, separated by spaces: `v1,` and the HMAC-SHA256 in base64 of `<webhook-id>.<webhook-timestamp>.<body>` by each ' +
        'active secret (Standard Webhooks 1.0).',
    ),
  },
  { title: 'WebhookHeaders' },
)

/** The event types of webhooks, each with the schema of its body. */
export const webhookMessages = [
  ...subjects.flatMap(subject =>
    eventsOf(subject).map(({ operation, description }) => {
      const type = eventTypeOf(subject, operation)
      const body = { type: Type.Literal(type), timestamp, data: Type.Union([change, changeIds]) }
      const confirms = subject === 'person' && (operation === 'create' || operation === 'update')
      const confirmations = Type.Optional(Type.Array(confirmation))
      return { type, description, payload: Type.Object(confirms ? { ...body, confirmations } : body) }
    }),
  ),
  {
    type: 'webhook.test',
    description: 'A test was asked for.',
    payload: Type.Object({
      type: Type.Literal('webhook.test'),
      timestamp,
      data: Type.Object({ webhook_id: number() }),
    }),
  },
]
