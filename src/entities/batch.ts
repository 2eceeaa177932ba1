import { type Static, Type } from 'typebox'
import { findOutcomeUnknown, unavailability } from '../db/pg-errors.ts'
import { type IfMatch, ifMatchMessage, readIfMatch } from '../entity-tag.ts'
import { Fault, pointer, type Refusal, refuse, refuseValue } from '../errors.ts'
import type { Call, HandlerResult } from '../http/pipeline/route.ts'
import { AtomicRefusal, writeAtomically } from './atomic.ts'
import type { EntityKind } from './entity-kind.ts'
import type { Address, Done, EntityBody, Outcome, Write } from './write-request.ts'
import { writeEntities } from './write-sets.ts'

const operation = Type.Object(
  {
    op: Type.Enum(['create', 'put', 'patch', 'upsert', 'delete']),
    external_id: Type.Optional(Type.String({ format: 'external-id' })),
    id: Type.Optional(Type.String({ format: 'uuid', description: 'Of a person.' })),
    record_id: Type.Optional(Type.String({ format: 'object-id', description: 'Of a record.' })),
    body: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    if_match: Type.Optional(Type.String({ description: 'As the header: `*`, or a version in double quotes.' })),
  },
  { additionalProperties: false },
)
type Operation = Static<typeof operation>

/** Body of the batch endpoints. Each operation's `body` is held to the rules of a request of its own. */
export const batchBody = Type.Object(
  {
    operations: Type.Array(operation, { maxItems: 1_000 }),
    atomic: Type.Optional(Type.Boolean({ description: 'All or nothing.' })),
  },
  { additionalProperties: false },
)
type Batch = Static<typeof batchBody>

type Item = { write: Write } | { refusal: Refusal }

/**
 * Writes up to 1,000 times: each element succeeds or fails by itself, with a status of its own, unless `atomic` asks
 * for all or nothing; then the first failing element is the answer.
 */
export async function batchEntities(kind: EntityKind, call: Call<Batch>): Promise<HandlerResult> {
  const stack_id = await kind.stackOf(call)
  const items = call.body.operations.map((operation, index) => itemFrom(kind, call, stack_id, operation, index))
  const outcomes = call.body.atomic ? await runAtomic(call, items) : await runEach(call, items)
  const shown = outcomes.map((outcome, index) => showOutcome(kind, outcome, index))
  const failed = outcomes.filter(outcome => !('done' in outcome)).length
  return { status: 200, data: { items: shown, failed } }
}

function itemFrom(kind: EntityKind, call: Call<Batch>, stack_id: number, operation: Operation, index: number): Item {
  try {
    if (operation.op === 'delete' ? operation.body !== undefined : operation.body === undefined)
      return refuseAt(index, 'body', operation.op === 'delete' ? 'has no place in a delete' : 'is required')
    const body = call.checkItem(operation.body ?? {}) as EntityBody
    const named = nameInBody(operation, body)
    const address = addressOf(kind, operation, named)
    if ('refused' in address) return refuseAt(index, address.refused.field, address.refused.message)
    const if_match = operation.if_match === undefined ? null : readIfMatch(operation.if_match)
    if (if_match === undefined) return refuseAt(index, 'if_match', ifMatchMessage)
    return { write: writeFrom(call, stack_id, operation, named, address.address, if_match) }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { refusal: within(error.refusal, index) }
  }
}

/** A create and an upsert may name their entity beside the body or in it. */
function nameInBody({ op, external_id }: Operation, body: EntityBody): EntityBody {
  const makes = op === 'create' || op === 'upsert'
  return makes && external_id !== undefined && body.external_id === undefined ? { ...body, external_id } : body
}

type Addressed = { address: Address | null } | { refused: { field: string; message: string } }

function addressOf({ identifier, noun }: EntityKind, operation: Operation, body: EntityBody): Addressed {
  const { op, external_id } = operation
  const other = identifier.field === 'id' ? 'record_id' : 'id'
  if (operation[other] !== undefined) return { refused: { field: other, message: `is no identifier of a ${noun}` } }
  const internal = operation[identifier.field]
  if (op === 'create' || op === 'upsert') {
    if (internal !== undefined) return { refused: { field: identifier.field, message: `cannot be chosen` } }
    if (external_id !== undefined && body.external_id !== external_id)
      return { refused: { field: 'external_id', message: 'differs from the one in the body' } }
    if (op === 'upsert' && !body.external_id) return { refused: { field: 'external_id', message: 'is required' } }
    return { address: body.external_id ? { external_id: body.external_id } : null }
  }
  if ((external_id === undefined) === (internal === undefined))
    return { refused: { field: 'external_id', message: `give either external_id or ${identifier.field}` } }
  return { address: internal === undefined ? { external_id: external_id! } : { id: identifier.toUuid(internal) } }
}

function writeFrom(
  call: Call<Batch>,
  stack_id: number,
  { op }: Operation,
  body: EntityBody,
  address: Address | null,
  if_match: IfMatch,
): Write {
  return {
    operation: op,
    stack_id,
    address,
    body,
    boundFrom: call.boundFrom,
    if_match,
    references: call.preferences.references,
    represent: false,
    bytes: Math.ceil(call.bytes / call.body.operations.length),
    actor: call.caller.subject,
    request_id: call.request_id,
  }
}

async function runEach(call: Call<Batch>, items: Item[]): Promise<Outcome[]> {
  const writes = items.flatMap(item => ('write' in item ? [item.write] : []))
  const written = await writeEntities(call.db, call.caller.organization.id, writes, call)
  const errors = written.flatMap(outcome => ('error' in outcome ? [outcome.error] : []))
  // With nothing done it is the request that failed, not its elements. Where one of them may be done, it says so.
  if (errors.length > 0 && (call.signal.aborted || errors.length === written.length))
    throw findOutcomeUnknown(errors) ?? errors[0]
  const outcomes = written.values()
  return items.map((item, index) => {
    if ('refusal' in item) return item
    const outcome = outcomes.next().value!
    return 'refusal' in outcome ? { refusal: within(outcome.refusal, index) } : outcome
  })
}

async function runAtomic(call: Call<Batch>, items: Item[]): Promise<{ done: Done }[]> {
  const end = items.findIndex(item => 'refusal' in item)
  const before = end === -1 ? items : items.slice(0, end)
  const writes = before.flatMap(item => ('write' in item ? [item.write] : []))
  const refused = items[end] as { refusal: Refusal } | undefined
  try {
    const written = await writeAtomically(call.db, call.caller.organization.id, writes, call, refused?.refusal)
    return written.map(done => ({ done }))
  } catch (error) {
    throw error instanceof AtomicRefusal ? new Fault(within(error.refusal, error.index)) : error
  }
}

/** A refusal of one element, its paths led from the request's root. */
function within(refusal: Refusal, index: number): Refusal {
  const base = pointer('operations', index, 'body')
  return { ...refusal, details: refusal.details.map(({ path, message }) => ({ path: base + path, message })) }
}

function refuseAt(index: number, field: string, message: string): { refusal: Refusal } {
  return { refusal: refuseValue(pointer('operations', index, field), message) }
}

const statuses = { created: 201, updated: 200, unchanged: 200, deleted: 200 } as const

function showOutcome({ identifier }: EntityKind, outcome: Outcome, index: number) {
  if ('done' in outcome) {
    const { id, external_id, result } = outcome.done
    return { index, status: statuses[result], id: identifier.fromUuid(id), external_id }
  }
  const refusal = 'refusal' in outcome ? outcome.refusal : refusalOfFault(outcome.error)
  const { word, status, message, details, outcome: known } = refusal
  return { index, status, error: word, message, details, outcome: known }
}

const refusalOfFault = (error: unknown): Refusal =>
  error instanceof Fault
    ? error.refusal
    : (unavailability(error) ?? refuse('operation_failed', 'The operation failed.'))
