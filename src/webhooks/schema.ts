import type { Static } from 'typebox'
import { listSchema, times } from '../organizations/definition-schema.ts'
import {
  closedObject,
  count,
  filledText,
  flag,
  nullable,
  number,
  optionals,
  pageLimit,
  Type,
  text,
  time,
} from '../values/json-schema.ts'
import { allEvents, eventPattern, eventSubjects } from './events.ts'
import { maxHeaders, maxValueCharacters } from './request-headers.ts'
import { maxCounted } from './sql.ts'

const listed = (names: readonly string[]) => names.map(name => `\`${name}\``).join(', ')

const url = filledText(
  2_048,
  'Where changes are sent: an https URL without a user and without a fragment, on a public address.',
)
const events = Type.Array(Type.String({ title: 'WebhookEventName', pattern: eventPattern }), {
  minItems: 1,
  maxItems: 50,
  description:
    `The events to send, such as \`person.created\`: a subject (${listed(eventSubjects)}) and what happens to it (${listed(allEvents)}). ` +
    '`consent.*` are the changes of people that have consents. `.*` means all of a subject.',
})
const stacks = nullable(
  Type.Array(text(), {
    minItems: 1,
    maxItems: 100,
    description: 'Only the records of these stacks. Null means all. Other subjects are not limited.',
  }),
)
const keys = nullable(
  Type.Array(text(), {
    minItems: 1,
    maxItems: 100,
    description:
      'Only changes that touch one of these fields: `email`, or `attribute_values.city`. An erasure touches all. Null means all.',
  }),
)
const description = nullable(Type.String({ maxLength: 2_000 }))
const headersText =
  `Headers of each request, by name, at most ${maxHeaders}: what a receiver or its gateway asks for, such as \`Authorization\`. Not ` +
  'those that kith sets or that frame a message. No read shows their values.'
const headerValue = filledText(maxValueCharacters)
const headers = Type.Record(text(), headerValue, { description: headersText })
const headersPatch = nullable(
  Type.Record(text(), nullable(headerValue), {
    description: `${headersText} A header that is not given is kept, and null removes it. Null in place of the object removes all.`,
  }),
)
const headerNames = Type.Array(text(), {
  description: 'The names of the headers of each request besides those that kith sets, in lower case.',
})
const payload = Type.Enum(['full', 'ids'], {
  description:
    '`full`: the whole change, as the feed shows it. `ids`: what changed, without values. The default is full.',
})
const active = flag(
  'Whether changes are sent. An inactive webhook keeps its position, and goes on from it when it is activated.',
)

const links = flag(
  'Whether the event of a grant that waits for its confirmation (`double_opt_in`) has `confirmations`: of each such grant the consent type, the channel, the ' +
    'address of the person and the `confirm_url` to send there. Needs the payload `full`.',
)

const shared = { stacks, keys, description, payload, active, links }
const settings = { url, events, ...shared, headers: headerNames }

export const newWebhook = closedObject(
  { url, events, ...optionals({ ...shared, headers }) },
  {
    title: 'WebhookBody',
    examples: [{ url: 'https://your-receiver.example/kith', events: ['person.updated'], active: false }],
  },
)
export type WebhookBody = Static<typeof newWebhook>

export const webhookPatch = closedObject(optionals({ url, events, ...shared, headers: headersPatch }), {
  title: 'WebhookPatch',
  examples: [{}],
})
export type WebhookPatch = Static<typeof webhookPatch>

const moment = nullable(time())

const response = {
  response: nullable(text('The first 1 KiB of the response.')),
  error: nullable(text('Why there was no response.')),
}

const at = '2026-01-01T12:00:00.000Z'

const status = Type.Enum(['waiting', 'delivered', 'failed'], {
  description: '`failed` deliveries were given up after ten attempts. A replay sends them again.',
})

const deliveryStates = ['due', 'failing', 'blocked', 'delivered', 'failed'] as const
const deliveryState = Type.Enum([...deliveryStates], {
  description:
    'The status, and of one that waits, why: `due` is sent as soon as it is its turn, `failing` is tried again after an attempt that failed, `blocked` waits ' +
    'for an earlier change of the same entity. `delivered` has arrived, `failed` was given up.',
})

export const delivery = Type.Object(
  {
    sequence: number('The number of the change.'),
    message_id: text('The header `webhook-id` of its requests.'),
    type: text(),
    status,
    state: deliveryState,
    attempts: count(),
    created_at: time(),
    next_attempt_at: nullable(
      time(
        'When it is sent next, never in the past: of a delivery that is due, it is the time of the response. Null if it has ended, ' +
          'waits for an earlier change of the same entity, or the webhook is inactive.',
      ),
    ),
    last_attempt_at: moment,
    response_status: nullable(
      Type.Integer({ description: 'The status of the last response. Null if there was none.' }),
    ),
    duration_ms: nullable(count()),
    ...response,
  },
  {
    title: 'WebhookDelivery',
    description: 'A delivery of a webhook, with its last attempt.',
    examples: [
      {
        sequence: 1_204,
        message_id: '6f1a3a52-8c1e-4d0f-9a59-0d2c54c7a1b3:1204',
        type: 'person.updated',
        status: 'delivered',
        state: 'delivered',
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

export const backlog = Type.Object(
  {
    changes: count('The changes after `position`, which were not looked at yet. Not all of them have to match.'),
    deliveries: Type.Integer({
      minimum: 0,
      maximum: maxCounted,
      description: `The deliveries that wait. ${maxCounted} means that many, or more.`,
    }),
    oldest_at: nullable(time('Since when the oldest of these deliveries waits.')),
    blocking: nullable(delivery),
  },
  {
    title: 'WebhookBacklog',
    description:
      'The changes that the receiver has not accepted yet. `blocking` is the oldest delivery whose last attempt failed, with its response and ' +
      'its next attempt, or else the oldest that waits.',
  },
)

const state = Type.Enum(['active', 'failing', 'paused', 'disabled'], {
  description:
    '`failing`: its last attempt failed, and it is tried again. `paused`: `active` is false. `disabled`: kith has made it inactive.',
})

const shown = {
  id: number(),
  ...settings,
  disabled: nullable(
    Type.Object(
      {
        reason: Type.Enum(['gone', 'failing'], {
          description: '`gone`: the receiver responded with 410. `failing`: it has accepted nothing for five days.',
        }),
        at: time(),
      },
      {
        title: 'WebhookDisabled',
        description: 'Why kith has made the webhook inactive. `active: true` activates it again.',
      },
    ),
  ),
  failing_since: moment,
  last_success_at: moment,
  state,
  position: count('The number of the last change that was looked at.'),
  backlog,
  ...times,
}
const example = {
  id: 1,
  url: 'https://receiver.example/kith',
  events: ['person.updated', 'consent.*'],
  stacks: null,
  keys: null,
  description: 'The mailing tool',
  payload: 'full',
  active: true,
  links: false,
  headers: ['authorization'],
  disabled: null,
  failing_since: null,
  last_success_at: at,
  state: 'active',
  position: 1_204,
  backlog: { changes: 0, deliveries: 0, oldest_at: null, blocking: null },
  created_at: at,
  updated_at: at,
}

export const webhook = Type.Object(shown, {
  title: 'Webhook',
  description: 'A webhook as reads return it.',
  examples: [example],
})
export type WebhookShape = Static<typeof webhook>

export const webhookList = listSchema(webhook)

export const webhookWithSecret = Type.Object(
  { ...shown, secret: text('Signs every request. It is shown only this once.') },
  {
    title: 'WebhookWithSecret',
    description: 'A webhook with the secret that was just made.',
    examples: [{ ...example, secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD' }],
  },
)

export const deliveriesQuery = closedObject({
  // The schema has a pattern, because the page at /docs/api would fill in the first value of an enum.
  status: Type.Optional(
    Type.String({ pattern: '^(waiting|delivered|failed)$', description: '`waiting`, `delivered` or `failed`.' }),
  ),
  state: Type.Optional(
    Type.String({
      pattern: `^(${deliveryStates.join('|')})$`,
      description: '`due`, `failing`, `blocked`, `delivered` or `failed`.',
    }),
  ),
  before: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Only deliveries of changes before this number.',
    }),
  ),
  limit: pageLimit(500, 'The default is 50.'),
})
export type DeliveriesQuery = Static<typeof deliveriesQuery>

export const testDelivery = Type.Object(
  {
    message_id: text('The header `webhook-id` of its request.'),
    type: Type.Literal('webhook.test'),
    state: Type.Enum(['delivered', 'failed']),
    at: time('When it was sent.'),
    response_status: nullable(Type.Integer({ description: 'The status of the response. Null if there was none.' })),
    duration_ms: count(),
    ...response,
  },
  { title: 'WebhookTestDelivery', description: 'A test event. It is sent once, and is not about a change.' },
)
export type TestDeliveryShape = Static<typeof testDelivery>

export const deliveryPage = Type.Object(
  {
    items: Type.Array(delivery),
    has_more: flag(),
    tests: Type.Array(testDelivery, {
      description:
        'The last test events, newest first, up to 20. A page with `before` has none, and `state` and `status` select them too.',
    }),
  },
  {
    title: 'WebhookDeliveryPage',
    description: 'A page of the deliveries of a webhook, newest first.',
    examples: [{ items: [], has_more: false, tests: [] }],
  },
)
export type DeliveryPageShape = Static<typeof deliveryPage>

export const testResult = Type.Object(
  {
    delivered: flag('Whether the receiver responded with a status of 200 to 299.'),
    response_status: nullable(Type.Integer()),
    duration_ms: count(),
    ...response,
  },
  {
    title: 'WebhookTest',
    examples: [{ delivered: true, response_status: 200, duration_ms: 35, response: 'ok', error: null }],
  },
)

const position = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }

export const replayBody = closedObject(
  {
    after: Type.Integer({ ...position, description: 'Send the matching changes after this number again.' }),
    until: Type.Optional(
      Type.Integer({ ...position, description: 'Up to this number. The default is the position of the webhook.' }),
    ),
  },
  { title: 'WebhookReplay', examples: [{ after: 9_007_199_254_740_991 }] },
)
export type ReplayBody = Static<typeof replayBody>

export const replayResult = Type.Object(
  { after: Type.Integer(position), until: Type.Integer(position) },
  {
    title: 'WebhookReplayed',
    description: 'The range of changes that is sent again.',
    examples: [{ after: 1_200, until: 1_204 }],
  },
)
