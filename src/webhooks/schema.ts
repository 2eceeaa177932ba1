import type { Static } from 'typebox'
import { Type } from '../json-schema.ts'
import { listSchema, nullable, times } from '../organizations/definition-schema.ts'
import { eventPattern } from './events.ts'

const url = Type.String({
  minLength: 1,
  maxLength: 2_048,
  description: 'Where changes are sent: an https URL without a user and without a fragment, on a public address.',
})
const events = Type.Array(Type.String({ pattern: eventPattern }), {
  minItems: 1,
  maxItems: 50,
  description:
    'The events to send: `person.created`, `person.updated`, `person.deleted`, `person.restored`, and the same of `record`, ' +
    '`stack`, `attribute`, `consent_type`, `webhook` and `settings`. `consent.*` are the changes of people that have consents. `.*` ' +
    'means all of a subject.',
})
const stacks = nullable(
  Type.Array(Type.String(), {
    minItems: 1,
    maxItems: 100,
    description: 'Only the records of these stacks. Null means all. Other subjects are not limited.',
  }),
)
const keys = nullable(
  Type.Array(Type.String(), {
    minItems: 1,
    maxItems: 100,
    description: 'Only changes that touch one of these fields: `email`, or `attribute_values.city`. Null means all.',
  }),
)
const description = nullable(Type.String({ maxLength: 2_000 }))
const payload = Type.Enum(['full', 'ids'], {
  description:
    '`full`: the whole change, as the feed shows it. `ids`: what changed, without values. The default is full.',
})
const active = Type.Boolean({
  description:
    'Whether changes are sent. An inactive webhook keeps its position, and goes on from it when it is activated.',
})

const settings = { url, events, stacks, keys, description, payload, active }
const optional = {
  stacks: Type.Optional(stacks),
  keys: Type.Optional(keys),
  description: Type.Optional(description),
  payload: Type.Optional(payload),
  active: Type.Optional(active),
}

/** Body of POST /v1/webhooks. */
export const newWebhook = Type.Object(
  { url, events, ...optional },
  {
    additionalProperties: false,
    title: 'NewWebhook',
    examples: [{ url: 'https://your-receiver.example/kith', events: ['person.updated'], active: false }],
  },
)
export type NewWebhook = Static<typeof newWebhook>

/** Body of PATCH /v1/webhooks/{id}. */
export const webhookPatch = Type.Object(
  { url: Type.Optional(url), events: Type.Optional(events), ...optional },
  { additionalProperties: false, title: 'WebhookPatch', examples: [{}] },
)
export type WebhookPatch = Static<typeof webhookPatch>

const moment = nullable(Type.String({ format: 'date-time' }))

const shown = {
  id: Type.Integer({ minimum: 1 }),
  ...settings,
  disabled: nullable(
    Type.Object(
      {
        reason: Type.Enum(['gone', 'failing'], {
          description: '`gone`: the receiver answered 410. `failing`: it has accepted nothing for five days.',
        }),
        at: Type.String({ format: 'date-time' }),
      },
      { description: 'Why kith has made the webhook inactive. `active: true` activates it again.' },
    ),
  ),
  failing_since: moment,
  last_success_at: moment,
  position: Type.Integer({ minimum: 0, description: 'The number of the last change that was looked at.' }),
  ...times,
}
const at = '2026-01-01T12:00:00.000Z'
const example = {
  id: 1,
  url: 'https://receiver.example/kith',
  events: ['person.updated', 'consent.*'],
  stacks: null,
  keys: null,
  description: 'The mailing tool',
  payload: 'full',
  active: true,
  disabled: null,
  failing_since: null,
  last_success_at: at,
  position: 1_204,
  created_at: at,
  updated_at: at,
}

/** A webhook as a read shows it, without its secrets. */
export const webhook = Type.Object(shown, { title: 'Webhook', examples: [example] })
export type WebhookShape = Static<typeof webhook>

export const webhookList = listSchema(webhook)

/** A webhook with the secret that was just made. No read shows it again. */
export const webhookWithSecret = Type.Object(
  { ...shown, secret: Type.String({ description: 'Signs every request. It is shown only this once.' }) },
  {
    title: 'WebhookWithSecret',
    examples: [{ ...example, secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD' }],
  },
)

const status = Type.Enum(['waiting', 'delivered', 'failed'], {
  description: '`failed` deliveries were given up after ten attempts. A replay sends them again.',
})

/** Query of GET /v1/webhooks/{id}/deliveries. */
export const deliveriesQuery = Type.Object(
  {
    // The page at /docs would fill in the first value of an enumeration.
    status: Type.Optional(
      Type.String({ pattern: '^(waiting|delivered|failed)$', description: '`waiting`, `delivered` or `failed`.' }),
    ),
    before: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Only deliveries of changes before this number.',
      }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: 'The default is 50.' })),
  },
  { additionalProperties: false },
)
export type DeliveriesQuery = Static<typeof deliveriesQuery>

/** A delivery as the list shows it. */
export const delivery = Type.Object(
  {
    sequence: Type.Integer({ minimum: 1, description: 'The number of the change.' }),
    message_id: Type.String({ description: 'The header `webhook-id` of its requests.' }),
    type: Type.String(),
    status,
    attempts: Type.Integer({ minimum: 0 }),
    created_at: Type.String({ format: 'date-time' }),
    next_attempt_at: nullable(
      Type.String({
        format: 'date-time',
        description: 'Null if it has ended, or waits for an earlier change of the same entity.',
      }),
    ),
    last_attempt_at: moment,
    response_status: nullable(
      Type.Integer({ description: 'The status of the last response. Null if there was none.' }),
    ),
    duration_ms: nullable(Type.Integer({ minimum: 0 })),
    response: nullable(Type.String({ description: 'The first 1 KiB of the response.' })),
    error: nullable(Type.String({ description: 'Why there was no response.' })),
  },
  {
    title: 'Delivery',
    examples: [
      {
        sequence: 1_204,
        message_id: '6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3:1204',
        type: 'person.updated',
        status: 'delivered',
        attempts: 1,
        created_at: at,
        next_attempt_at: null,
        last_attempt_at: at,
        response_status: 200,
        duration_ms: 35,
        response: 'ok',
        error: null,
      },
    ],
  },
)
export type DeliveryShape = Static<typeof delivery>

export const deliveryPage = Type.Object(
  { items: Type.Array(delivery), has_more: Type.Boolean() },
  { title: 'DeliveryPage', examples: [{ items: [], has_more: false }] },
)

/** The outcome of POST /v1/webhooks/{id}/test. */
export const testResult = Type.Object(
  {
    delivered: Type.Boolean({ description: 'Whether the receiver answered with a status of 200 to 299.' }),
    response_status: nullable(Type.Integer()),
    duration_ms: Type.Integer({ minimum: 0 }),
    response: nullable(Type.String({ description: 'The first 1 KiB of the response.' })),
    error: nullable(Type.String({ description: 'Why there was no response.' })),
  },
  {
    title: 'WebhookTest',
    examples: [{ delivered: true, response_status: 200, duration_ms: 35, response: 'ok', error: null }],
  },
)

const position = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }

/** Body of POST /v1/webhooks/{id}/replay. */
export const replayBody = Type.Object(
  {
    after: Type.Integer({ ...position, description: 'Send the matching changes after this number again.' }),
    until: Type.Optional(
      Type.Integer({ ...position, description: 'Up to this number. The default is the position of the webhook.' }),
    ),
  },
  { additionalProperties: false, title: 'ReplayBody', examples: [{ after: 9_007_199_254_740_991 }] },
)
export type ReplayBody = Static<typeof replayBody>

export const replayResult = Type.Object(
  { after: Type.Integer(position), until: Type.Integer(position) },
  { title: 'Replay', examples: [{ after: 1_200, until: 1_204 }] },
)
