import { randomUUID } from 'node:crypto'
import { deletionIdentity, type Entry, restoreIdentity } from './journal.ts'
import type { Random } from './rounds.ts'

type Body = Record<string, unknown> & { attribute_values: Record<string, unknown> }
type Operation = { op: string; external_id?: string; body?: Body }

/** The names to write to. They are few, so that writes conflict. */
const people = Array.from({ length: 12 }, (_, index) => `p${index}`)
const orders = Array.from({ length: 6 }, (_, index) => `o${index}`)

/** The internal identifiers of entities that were deleted, by collection, in order of their deletion. */
export type DeletedIds = { '/v1/people': string[]; '/v1/stacks/orders': string[] }

/**
 * Draws the next request: a create, patch, replacement, deletion, restore, upsert, batch or rename, with consents, and with links to
 * existing, deleted and new entities. Each write but a deletion and a restore has a mark, which identifies its change in the change log.
 */
export function drawRequest(random: Random, deleted: DeletedIds): Entry {
  const request_id = randomUUID()
  const kinds = [
    personWrite,
    personWrite,
    personWrite,
    personWrite,
    personWrite,
    keyedCreate,
    batch,
    atomicBatch,
    recordWrite,
    recordWrite,
    restore,
  ]
  const draft = random.pick(kinds)(random, request_id, deleted)
  const headers = { 'X-Request-Id': request_id, ...draft.headers }
  return { atomic: false, ...draft, headers, started: 0, finished: Infinity, status: 0 }
}

type RequestDraft = Pick<Entry, 'method' | 'path' | 'body' | 'writes'> & Partial<Pick<Entry, 'headers' | 'atomic'>>

function personWrite(random: Random, request_id: string): RequestDraft {
  const operation = drawOperation(random, people, mark => personBody(random, mark), request_id)
  return singleRequest('/v1/people', operation, request_id)
}

function recordWrite(random: Random, request_id: string): RequestDraft {
  if (random.oneIn(3)) {
    const body = { attribute_values: { mark: request_id, visitor: random.pick(people) } }
    return singleRequest('/v1/stacks/visits', { op: 'create', body }, request_id)
  }
  const operation = drawOperation(random, orders, mark => orderBody(random, mark), request_id)
  return singleRequest('/v1/stacks/orders', operation, request_id)
}

const unknownIds = { '/v1/people': '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', '/v1/stacks/orders': 'f'.repeat(24) }

/** Draws the restore of an entity that was deleted last. It may exist again, and another one may have its name. */
function restore(random: Random, request_id: string, deleted: DeletedIds): RequestDraft {
  const collection = random.oneIn(3) ? '/v1/stacks/orders' : '/v1/people'
  const id = deleted[collection].at(-1 - random.below(3)) ?? unknownIds[collection]
  const path = `${collection}/internal/${id}/restore`
  return {
    method: 'POST',
    path,
    body: undefined,
    writes: [{ identity: restoreIdentity(request_id), outcome: 'unknown' }],
  }
}

function keyedCreate(random: Random, request_id: string): RequestDraft {
  const body = personBody(random, request_id)
  if (random.oneIn(2)) body.external_id = random.pick(people)
  return {
    ...singleRequest('/v1/people', { op: 'create', body }, request_id),
    headers: { 'Idempotency-Key': request_id },
  }
}

function batch(random: Random, request_id: string): RequestDraft {
  const drafts = Array.from({ length: 2 + random.below(5) }, (_, index) =>
    drawOperation(random, people, mark => personBody(random, mark), `${request_id}_${index}`),
  )
  // Two deletions of one name in a request would have the same identity.
  const operations = drafts.filter(
    ({ op, external_id }, index) =>
      op !== 'delete' || drafts.findIndex(other => other.op === op && other.external_id === external_id) === index,
  )
  const writes = operations.map(operation =>
    unresolvedWrite(operation, String(operation.body?.attribute_values.mark), request_id),
  )
  return { method: 'POST', path: '/v1/people/batch', body: { operations }, writes }
}

/** Draws an atomic batch of upserts and a few patches. Most of these batches succeed. */
function atomicBatch(random: Random, request_id: string): RequestDraft {
  const operations = Array.from({ length: 2 + random.below(5) }, (_, index) => {
    const body = personBody(random, `${request_id}_${index}`)
    return { op: random.oneIn(8) ? 'patch' : 'upsert', external_id: random.pick(people), body }
  })
  const writes = operations.map((operation, index) => unresolvedWrite(operation, `${request_id}_${index}`, request_id))
  return { method: 'POST', path: '/v1/people/batch', body: { operations, atomic: true }, writes, atomic: true }
}

function drawOperation(random: Random, names: string[], makeBody: (mark: string) => Body, mark: string): Operation {
  const external_id = random.pick(names)
  const op = random.pick(['create', 'patch', 'patch', 'patch', 'put', 'put', 'upsert', 'delete', 'rename'])
  if (op === 'delete') return { op, external_id }
  const body = makeBody(mark)
  if (op === 'create') return { op, body: { ...body, ...(random.below(4) > 0 && { external_id }) } }
  // Renames are rare: they deadlock with each other, and PostgreSQL detects a deadlock only after a second.
  if (op === 'rename' && random.oneIn(3))
    return { op: 'patch', external_id, body: { ...body, external_id: random.pick(names) } }
  return { op: op === 'rename' ? 'patch' : op, external_id, body }
}

const unresolvedWrite = (
  { op, external_id }: Operation,
  mark: string,
  request_id: string,
): Entry['writes'][number] => ({
  identity: op === 'delete' ? deletionIdentity(request_id, external_id!) : mark,
  outcome: 'unknown',
})

const methods: Record<string, string> = { create: 'POST', upsert: 'POST', put: 'PUT', patch: 'PATCH', delete: 'DELETE' }

/** Builds the request of a single operation. */
function singleRequest(collection: string, operation: Operation, request_id: string): RequestDraft {
  const { op, external_id, body } = operation
  const writes = [unresolvedWrite(operation, request_id, request_id)]
  const method = methods[op]!
  if (op === 'create') return { method, path: collection, body, writes }
  if (op === 'upsert') return { method, path: `${collection}/upsert`, body: { ...body, external_id }, writes }
  return { method, path: `${collection}/${external_id}`, body, writes }
}

/** Returns the name of a person that exists, was deleted, or is created as a placeholder by the link. */
const randomPersonName = (random: Random) => (random.oneIn(4) ? `born${random.below(1_000_000)}` : random.pick(people))

function personBody(random: Random, mark: string): Body {
  const attribute_values: Record<string, unknown> = { mark, n: random.below(1_000), tag: `t${random.below(20)}` }
  if (random.oneIn(3)) attribute_values.referrer = random.oneIn(5) ? null : randomPersonName(random)
  if (random.oneIn(4))
    attribute_values.friends = [
      ...new Set([randomPersonName(random), randomPersonName(random), randomPersonName(random)]),
    ]
  if (random.oneIn(5)) attribute_values.owns = [random.pick(orders), `order${random.below(1_000)}`]
  if (random.oneIn(5)) attribute_values[`k${random.below(5)}`] = { deep: [random.below(9), 'text', null] }
  const body: Body = { first_name: `name ${random.below(1_000)}`, attribute_values }
  if (random.oneIn(3))
    return { ...body, ...random.pick(['email_consent', 'sms_consent'].map(flag => ({ [flag]: random.oneIn(2) }))) }
  if (random.oneIn(3))
    body.consents = [
      {
        ...{ consent_type_id: 1 + random.below(2), channel: random.pick(['email', 'sms']), state: random.oneIn(2) },
        ...(random.oneIn(2) && { collected_at: `202${random.below(5)}-01-01T00:00:00Z`, method: 'import' }),
      },
    ]
  return body
}

function orderBody(random: Random, mark: string): Body {
  const attribute_values: Record<string, unknown> = { mark, n: random.below(1_000) }
  if (random.oneIn(2)) attribute_values.buyer = randomPersonName(random)
  return { attribute_values }
}
