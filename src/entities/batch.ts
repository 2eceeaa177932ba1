import { createHash } from 'node:crypto'
import type { Static } from 'typebox'
import { findOutcomeUnknown, unavailability } from '../db/pg-errors.ts'
import { otherRequestRefusal } from '../idempotency/kept-responses.ts'
import { yieldIfDue } from '../process/event-loop.ts'
import type { BatchCall, Call, Keyed, StoredResponse } from '../route/call.ts'
import { ifMatchMessage, readIfMatch } from '../route/entity-tag.ts'
import { accessOf, requireWritable } from '../route/field-rights.ts'
import { listResult } from '../route/list-result.ts'
import type { HandlerResult } from '../route/result.ts'
import { createRefusal, Fault, invalidValues, pointer, type Refusal, refuse } from '../values/errors.ts'
import { flag, Type, text, uuid } from '../values/json-schema.ts'
import type { EntityKind } from './entity-kind.ts'
import { dryRunToJson, withMemory } from './handlers.ts'
import { readMatch } from './write/load/match.ts'
import { writeArray } from './write/request-coalescing.ts'
import { AtomicRefusal, dryRun, requireAll, writeAtomically } from './write/run.ts'
import {
  type Address,
  type Decided,
  type Done,
  type EntityBody,
  type MatchKind,
  newWrite,
  type Outcome,
  requestOf,
  type Write,
} from './write-request.ts'

const operation = Type.Object(
  {
    op: Type.Enum(['create', 'put', 'patch', 'upsert', 'delete']),
    external_id: Type.Optional(Type.String({ format: 'external-id' })),
    id: Type.Optional(uuid('The internal identifier of a person.')),
    record_id: Type.Optional(Type.String({ format: 'object-id', description: 'The internal identifier of a record.' })),
    body: Type.Optional(Type.Record(text(), Type.Unknown())),
    if_match: Type.Optional(text('The value of the `If-Match` header: `*`, or a version in double quotes.')),
  },
  { additionalProperties: false, title: 'BatchOperation' },
)
type Operation = Static<typeof operation>

/** Body of the batch endpoints. Each operation's `body` follows the rules of the single request. */
export const batchBody = Type.Object(
  {
    operations: Type.Array(operation, { maxItems: 1_000 }),
    atomic: Type.Optional(flag('Applies all operations or none.')),
  },
  { additionalProperties: false },
)
/** `match` applies to the upserts of people. */
export type Batch = Static<typeof batchBody> & { match?: readonly MatchKind[] }

type BatchItem = { write: Write } | { refusal: Refusal }

/**
 * Runs up to 1,000 operations. Each succeeds or fails on its own, with its own status. With `atomic`, all or none are
 * applied, and the first operation that fails determines the response.
 */
export async function batchEntities(kind: EntityKind, call: BatchCall<Batch>): Promise<HandlerResult> {
  const stack_id = await kind.stackOf(call)
  const match = readMatch(call.body.match)
  const items: BatchItem[] = []
  for (const [index, operation] of call.body.operations.entries()) {
    await yieldIfDue()
    items.push(
      itemFrom(kind, call, { stack_id, match: operation.op === 'upsert' ? match : undefined }, operation, index),
    )
  }
  if (call.isDryRun) return respondDryRun(kind, call, stack_id, items)
  const { outcomes, isReplayed } = await (call.body.atomic ? runAtomic : runEach)(call, items)
  for (const outcome of outcomes) if ('done' in outcome) call.shown.add(stack_id, outcome.done.id)
  call.written.sequence = Math.max(0, ...outcomes.map(outcome => ('done' in outcome ? outcome.done.sequence : 0)))
  const itemOf = (outcome: Outcome, index: number) => batchResult(kind, outcome, index)
  const result = await listResult(outcomes, itemOf, `"failed":${countFailed(outcomes)}`)
  return isReplayed ? call.keyed!.replay({ status: 200, headers: {}, body: result.pieces.join('') }) : result
}

/** The outcome of each operation. `isReplayed`: the Idempotency-Key had all of these outcomes already. */
type BatchOutcomes = { outcomes: Outcome[]; isReplayed: boolean }

const countFailed = (outcomes: Outcome[]) => outcomes.filter(outcome => !('done' in outcome)).length

/** Maximum size of the values of a dry run, in characters of JSON. A batch of 8 MiB may change more than that. */
const maxDryRunLength = 16 * 1_048_576

/** Responds with the changes that the operations would make. */
async function respondDryRun(
  kind: EntityKind,
  call: Call<Batch>,
  stack_id: number,
  items: BatchItem[],
): Promise<HandlerResult> {
  const { context, caller, signal, memory } = call
  const response = await withMemory(memory, maxDryRunLength, async () => {
    const { writes, nextRefusal } = call.body.atomic ? beforeRefusal(items) : { writes: writesOf(items) }
    const options = { limits: call.limits, signal, maxLength: maxDryRunLength }
    const { outcomes: written, isTooLarge } = await dryRun(context, writes, options)
    const outcomes = call.body.atomic ? await allDone(() => requireAll(written, nextRefusal)) : merge(items, written)
    if (isTooLarge) refuse('invalid_parameter', tooLargeMessage)
    const itemOf = (outcome: Outcome, index: number) => {
      const result = batchResult(kind, outcome, index)
      if (!('done' in outcome)) return result
      const dry_run = dryRunToJson(kind, caller, stack_id, outcome.done)
      if (outcome.done.preview!.isNew) return { ...result, id: null, dry_run }
      call.shown.add(stack_id, outcome.done.id)
      return { ...result, dry_run }
    }
    return listResult(outcomes, itemOf, `"failed":${countFailed(outcomes)},"dry_run":true`)
  })
  return response!
}

const tooLargeMessage =
  'The values that the operations would change take more than 16 MiB. Nothing was written. Send fewer operations to a dry run.'

function itemFrom(
  kind: EntityKind,
  call: BatchCall<Batch>,
  { stack_id, match }: Pick<Write, 'stack_id'> & { match: Write['match'] | undefined },
  operation: Operation,
  index: number,
): BatchItem {
  try {
    if (operation.op === 'delete' ? operation.body !== undefined : operation.body === undefined)
      return buildRefusalAt(index, 'body', operation.op === 'delete' ? 'must be absent in a delete' : 'is required')
    const body = call.checkItem(operation.body ?? {}) as EntityBody
    const entityBody = withExternalId(operation, body)
    requireWritable(accessOf(call.caller, stack_id), entityBody, { clearsRest: operation.op === 'put', match })
    const address = addressOf(kind, operation, entityBody, match !== undefined)
    if ('refused' in address) return buildRefusalAt(index, address.refused.field, address.refused.message)
    const if_match = operation.if_match === undefined ? null : readIfMatch(operation.if_match)
    if (if_match === undefined) return buildRefusalAt(index, 'if_match', ifMatchMessage)
    const target = { ...address, operation: operation.op, stack_id, body: entityBody, if_match }
    const write = writeFrom(call, match ? { ...target, match } : target)
    return { write: { ...write, mayRead: call.caller.scopes.has(kind.reads) } }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { refusal: withOperationPath(error.refusal, index) }
  }
}

/** A create or an upsert may give `external_id` in the operation or in its body. */
function withExternalId({ op, external_id }: Operation, body: EntityBody): EntityBody {
  const creates = op === 'create' || op === 'upsert'
  return creates && external_id !== undefined && body.external_id === undefined ? { ...body, external_id } : body
}

type AddressResult = { address: Address | null } | { refused: { field: string; message: string } }

function addressOf(
  { identifier, noun }: EntityKind,
  operation: Operation,
  body: EntityBody,
  hasMatch: boolean,
): AddressResult {
  const { op, external_id } = operation
  const other = identifier.field === 'id' ? 'record_id' : 'id'
  if (operation[other] !== undefined) return { refused: { field: other, message: `is not an identifier of a ${noun}` } }
  const internal = operation[identifier.field]
  if (op === 'create' || op === 'upsert') {
    if (internal !== undefined)
      return { refused: { field: identifier.field, message: `is assigned by the service and cannot be given` } }
    if (external_id !== undefined && body.external_id !== external_id)
      return { refused: { field: 'external_id', message: 'differs from external_id in the body' } }
    if (op === 'upsert' && !body.external_id && !hasMatch)
      return { refused: { field: 'external_id', message: 'is required' } }
    return { address: body.external_id ? { external_id: body.external_id } : null }
  }
  if ((external_id === undefined) === (internal === undefined))
    return { refused: { field: 'external_id', message: `give either external_id or ${identifier.field}` } }
  return { address: internal === undefined ? { external_id: external_id! } : { id: identifier.toUuid(internal) } }
}

function writeFrom(
  call: Call<Batch>,
  target: Pick<Write, 'operation' | 'stack_id' | 'address' | 'body' | 'if_match' | 'match'>,
): Write {
  const bytes = Math.ceil(call.bytes / call.body.operations.length)
  return newWrite({ ...target, ...requestOf(call), boundFrom: call.boundFrom, bytes })
}

const writesOf = (items: BatchItem[]) => items.flatMap(item => ('write' in item ? [item.write] : []))

async function runEach({ context, limits, signal, keyed }: Call<Batch>, items: BatchItem[]): Promise<BatchOutcomes> {
  const writes = writesOf(items)
  if (keyed && writes.length > 0) keepOutcomes(writes, keyed)
  const answered = await writeArray(context, writes, { limits, signal })
  if (answered.some(outcome => 'refusal' in outcome && outcome.refusal === otherRequestRefusal))
    throw new Fault(otherRequestRefusal)
  const written = answered.map(outcome => ('replayed' in outcome ? readOutcome(outcome.replayed) : outcome))
  const errors = written.flatMap(outcome => ('error' in outcome ? [outcome.error] : []))
  // If nothing was written, the whole request fails. If a write has an unknown outcome, the error reports that.
  if (errors.length > 0 && (signal.aborted || errors.length === written.length))
    throw findOutcomeUnknown(errors) ?? errors[0]
  return {
    outcomes: merge(items, written),
    isReplayed: answered.length > 0 && answered.every(each => 'replayed' in each),
  }
}

/**
 * Keeps the outcome of each write under a separate key, so that the writes of a batch share sets with other writes. A
 * repeated request returns the kept outcomes, and runs the writes that failed or were not reached.
 */
function keepOutcomes(writes: Write[], keyed: Keyed) {
  keyed.hasBegun = true
  const { id, request_sha256 } = keyed.key
  for (const [index, write] of writes.entries())
    write.keyed = {
      id: createHash('sha256').update(`${id} ${index}`).digest('hex'),
      batch_id: id,
      request_sha256,
      responseTo: outcome => ({ status: 200, headers: {}, body: JSON.stringify(outcome) }),
    }
}

const readOutcome = ({ body }: StoredResponse) => JSON.parse(body) as Decided

/** Returns the outcome of each operation. `written` has the outcomes of the writes among them, in order. */
function merge(items: BatchItem[], written: Outcome[]): Outcome[] {
  const outcomes = written.values()
  return items.map((item, index) => {
    if ('refusal' in item) return item
    const outcome = outcomes.next().value!
    return 'refusal' in outcome ? { refusal: withOperationPath(outcome.refusal, index) } : outcome
  })
}

/** The writes before the first operation that is already refused, and its refusal. */
function beforeRefusal(items: BatchItem[]): { writes: Write[]; nextRefusal?: Refusal } {
  const refused = items.findIndex(item => 'refusal' in item)
  if (refused === -1) return { writes: writesOf(items) }
  const { refusal } = items[refused] as { refusal: Refusal }
  return { writes: writesOf(items.slice(0, refused)), nextRefusal: namingOperation(refusal, refused) }
}

async function runAtomic({ context, limits, signal }: Call<Batch>, items: BatchItem[]): Promise<BatchOutcomes> {
  const { writes, nextRefusal } = beforeRefusal(items)
  const outcomes = await allDone(() => writeAtomically(context, writes, { limits, signal }, nextRefusal))
  return { outcomes, isReplayed: false }
}

/** The outcomes of writes that all succeeded. Throws the refusal of the first write that did not, with its index. */
async function allDone(work: () => Done[] | Promise<Done[]>): Promise<{ done: Done }[]> {
  try {
    return (await work()).map(done => ({ done }))
  } catch (error) {
    if (!(error instanceof AtomicRefusal)) throw error
    throw new Fault(namingOperation(withOperationPath(error.refusal, error.index), error.index))
  }
}

/** A refusal of a whole batch names the operation, also one without a value at fault, as of a missing entity. */
function namingOperation(refusal: Refusal, index: number): Refusal {
  if (refusal.details.length > 0) return refusal
  return { ...refusal, details: [{ path: pointer('operations', index), message: refusal.message }] }
}

/** Prefixes the paths of an operation's refusal, so that they start at the root of the request. */
function withOperationPath(refusal: Refusal, index: number): Refusal {
  const base = pointer('operations', index, 'body')
  return { ...refusal, details: refusal.details.map(({ path, message }) => ({ path: base + path, message })) }
}

function buildRefusalAt(index: number, field: string, message: string): { refusal: Refusal } {
  return {
    refusal: createRefusal('invalid_parameter', invalidValues, {
      details: [{ path: pointer('operations', index, field), message }],
    }),
  }
}

const statuses = { created: 201, updated: 200, unchanged: 200, deleted: 200, restored: 200 } as const

function batchResult({ identifier }: EntityKind, outcome: Outcome, index: number) {
  if ('done' in outcome) {
    const { id, external_id, result, warnings } = outcome.done
    return { index, status: statuses[result], id: identifier.fromUuid(id), external_id, warnings }
  }
  const refusal = 'refusal' in outcome ? outcome.refusal : refusalOfFault(outcome.error)
  const { code, status, message, details, reason, outcome: refusalOutcome } = refusal
  return { index, status, error: code, message, details, reason, outcome: refusalOutcome }
}

const refusalOfFault = (error: unknown): Refusal =>
  error instanceof Fault
    ? error.refusal
    : (unavailability(error) ?? createRefusal('operation_failed', 'The operation failed.'))
