import { randomUUID } from 'node:crypto'
import { deletion, type Entry } from './journal.ts'
import type { Chance } from './rounds.ts'

type Body = Record<string, unknown> & { attribute_values: Record<string, unknown> }
type Operation = { op: string; external_id?: string; body?: Body }

/** What is written to: few names, so that writes meet each other. */
const people = Array.from({ length: 12 }, (_, index) => `p${index}`)
const orders = Array.from({ length: 6 }, (_, index) => `o${index}`)

/**
 * Draws the next request: creates, patches, replacements, deletions, upserts, batches, renames, with consents and links to
 * entities that are there, were there, or are born by it. Each write carries a mark, so that each that is done shows.
 */
export function drawRequest(chance: Chance): Entry {
  const request_id = randomUUID()
  const kinds = [single, single, single, single, single, keyedCreate, batch, atomicBatch, record, record]
  const drawn = chance.pick(kinds)(chance, request_id)
  const headers = { 'X-Request-Id': request_id, ...drawn.headers }
  return { atomic: false, ...drawn, headers, started: 0, finished: Infinity, status: 0 }
}

type Drawn = Pick<Entry, 'method' | 'path' | 'body' | 'writes'> & Partial<Pick<Entry, 'headers' | 'atomic'>>

function single(chance: Chance, request_id: string): Drawn {
  const operation = drawOperation(chance, people, mark => personBody(chance, mark), request_id)
  return alone('/v1/people', operation, request_id)
}

function record(chance: Chance, request_id: string): Drawn {
  if (chance.oneIn(3)) {
    const body = { attribute_values: { mark: request_id, visitor: chance.pick(people) } }
    return alone('/v1/stacks/visits', { op: 'create', body }, request_id)
  }
  const operation = drawOperation(chance, orders, mark => orderBody(chance, mark), request_id)
  return alone('/v1/stacks/orders', operation, request_id)
}

function keyedCreate(chance: Chance, request_id: string): Drawn {
  const body = personBody(chance, request_id)
  if (chance.oneIn(2)) body.external_id = chance.pick(people)
  return { ...alone('/v1/people', { op: 'create', body }, request_id), headers: { 'Idempotency-Key': request_id } }
}

function batch(chance: Chance, request_id: string): Drawn {
  const drawn = Array.from({ length: 2 + chance.below(5) }, (_, index) =>
    drawOperation(chance, people, mark => personBody(chance, mark), `${request_id}_${index}`),
  )
  // Of two deletions of one name in a request nobody could tell which was done.
  const operations = drawn.filter(
    ({ op, external_id }, index) =>
      op !== 'delete' || drawn.findIndex(other => other.op === op && other.external_id === external_id) === index,
  )
  const writes = operations.map(operation =>
    written(operation, String(operation.body?.attribute_values.mark), request_id),
  )
  return { method: 'POST', path: '/v1/people/batch', body: { operations }, writes }
}

/** Upserts only: most are done, and all or none of them. */
function atomicBatch(chance: Chance, request_id: string): Drawn {
  const operations = Array.from({ length: 2 + chance.below(5) }, (_, index) => {
    const body = personBody(chance, `${request_id}_${index}`)
    return { op: chance.oneIn(8) ? 'patch' : 'upsert', external_id: chance.pick(people), body }
  })
  const writes = operations.map((operation, index) => written(operation, `${request_id}_${index}`, request_id))
  return { method: 'POST', path: '/v1/people/batch', body: { operations, atomic: true }, writes, atomic: true }
}

function drawOperation(chance: Chance, names: string[], makeBody: (mark: string) => Body, mark: string): Operation {
  const external_id = chance.pick(names)
  const op = chance.pick(['create', 'patch', 'patch', 'patch', 'put', 'put', 'upsert', 'delete', 'rename'])
  if (op === 'delete') return { op, external_id }
  const body = makeBody(mark)
  if (op === 'create') return { op, body: { ...body, ...(chance.below(4) > 0 && { external_id }) } }
  // Renames deadlock with each other, and each deadlock takes the server a second.
  if (op === 'rename' && chance.oneIn(3))
    return { op: 'patch', external_id, body: { ...body, external_id: chance.pick(names) } }
  return { op: op === 'rename' ? 'patch' : op, external_id, body }
}

const written = ({ op, external_id }: Operation, mark: string, request_id: string): Entry['writes'][number] => ({
  identity: op === 'delete' ? deletion(request_id, external_id!) : mark,
  outcome: 'unknown',
})

const methods: Record<string, string> = { create: 'POST', upsert: 'POST', put: 'PUT', patch: 'PATCH', delete: 'DELETE' }

/** An operation as a request of its own. */
function alone(collection: string, operation: Operation, request_id: string): Drawn {
  const { op, external_id, body } = operation
  const writes = [written(operation, request_id, request_id)]
  const method = methods[op]!
  if (op === 'create') return { method, path: collection, body, writes }
  if (op === 'upsert') return { method, path: `${collection}/upsert`, body: { ...body, external_id }, writes }
  return { method, path: `${collection}/${external_id}`, body, writes }
}

/** Somebody who is there, was there, or is brought to life by being named. */
const someone = (chance: Chance) => (chance.oneIn(4) ? `born${chance.below(1_000_000)}` : chance.pick(people))

function personBody(chance: Chance, mark: string): Body {
  const attribute_values: Record<string, unknown> = { mark, n: chance.below(1_000), tag: `t${chance.below(20)}` }
  if (chance.oneIn(3)) attribute_values.referrer = chance.oneIn(5) ? null : someone(chance)
  if (chance.oneIn(4)) attribute_values.friends = [...new Set([someone(chance), someone(chance), someone(chance)])]
  if (chance.oneIn(5)) attribute_values.owns = [chance.pick(orders), `order${chance.below(1_000)}`]
  if (chance.oneIn(5)) attribute_values[`k${chance.below(5)}`] = { deep: [chance.below(9), 'text', null] }
  const body: Body = { first_name: `name ${chance.below(1_000)}`, attribute_values }
  if (chance.oneIn(3))
    return { ...body, ...chance.pick(['email_consent', 'sms_consent'].map(flag => ({ [flag]: chance.oneIn(2) }))) }
  if (chance.oneIn(3))
    body.consents = [
      { consent_type_id: 1 + chance.below(2), channel: chance.pick(['email', 'sms']), state: chance.oneIn(2) },
    ]
  return body
}

function orderBody(chance: Chance, mark: string): Body {
  const attribute_values: Record<string, unknown> = { mark, n: chance.below(1_000) }
  if (chance.oneIn(2)) attribute_values.buyer = someone(chance)
  return { attribute_values }
}
