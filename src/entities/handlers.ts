import type { Release } from '../process/fair-pool.ts'
import type { Call } from '../route/call.ts'
import { closeEntity, closeValues } from '../route/closed-fields.ts'
import { entityTag } from '../route/entity-tag.ts'
import { accessOf, type FieldAccess, mayRead, requireWritable } from '../route/field-rights.ts'
import type { HandlerResult } from '../route/result.ts'
import { createRefusal, Fault, pointer, refuse, refuseValues, warningHeader } from '../values/errors.ts'
import type { EntityKind } from './entity-kind.ts'
import { type AsOfQuery, readAsOf } from './past/as-of.ts'
import { type Identifiers, type ReadForm, readSerialized, type SerializedEntity } from './read/entity-reader.ts'
import { labeler } from './read/labels.ts'
import { readableProjection } from './read/projection.ts'
import { readMatch } from './write/load/match.ts'
import { readQueued, writeQueued } from './write/request-coalescing.ts'
import { dryRun } from './write/run.ts'
import {
  type Address,
  type Decided,
  type Done,
  type EntityBody,
  type MatchKind,
  newWrite,
  requestOf,
  type Write,
  type WritePreview,
} from './write-request.ts'

/** The address in a path: the external identifier, or the internal one. */
export function addressOf({ params }: Pick<Call, 'params'>, { identifier }: Pick<EntityKind, 'identifier'>): Address {
  const internal = params[identifier.name]
  return internal === undefined ? { external_id: params.external_id! } : { id: identifier.toUuid(internal) }
}

/** Responds 201, or 200 if the same event already exists. `Location` is internal without an external identifier. */
export async function createEntity(kind: EntityKind, call: Call<EntityBody>): Promise<HandlerResult> {
  const { external_id } = call.body
  const address = external_id ? { external_id } : null
  const target = { operation: 'create', address, represent: true } as const
  return writeOne(kind, call, target, done =>
    done.result === 'unchanged'
      ? { status: 200 }
      : { status: 201, headers: { Location: locationOf(kind, call, done) } },
  )
}

/** The body of an upsert. `match` is not stored. Without it, the external identifier is required. */
export type UpsertBody = EntityBody & { external_id?: string; match?: readonly MatchKind[] }

/** Creates a missing entity (201), or merges into an existing one as PATCH does (200). */
export async function upsertEntity(kind: EntityKind, call: Call<UpsertBody>): Promise<HandlerResult> {
  const { match: kinds, ...body } = call.body
  const match = readMatch(kinds)
  const { external_id } = body
  if (external_id === undefined && !match) refuseValues({ path: pointer('external_id'), message: 'is required' })
  const address = external_id === undefined ? null : { external_id }
  const target = { operation: 'upsert', address, represent: true, match } as const
  return writeOne(kind, { ...call, body }, target, done =>
    done.result === 'created' ? { status: 201, headers: { Location: locationOf(kind, call, done) } } : { status: 200 },
  )
}

/** Sent only where the client's preference changes the response (RFC 7240, section 3). */
const preferenceApplied = { 'Preference-Applied': 'return=representation' }

export async function updateEntity(
  kind: EntityKind,
  operation: 'put' | 'patch',
  call: Call<EntityBody>,
): Promise<HandlerResult> {
  const represent = call.preferences.representation
  const target = { operation, address: addressOf(call, kind), represent }
  return writeOne(kind, call, target, done =>
    represent
      ? { status: 200, headers: preferenceApplied }
      : { status: 200, data: true, headers: { ETag: entityTag(done.version) } },
  )
}

export async function deleteEntity(kind: EntityKind, call: Call<EntityBody>): Promise<HandlerResult> {
  const target = { operation: 'delete', address: addressOf(call, kind), represent: false } as const
  return writeOne(kind, call, target, () => ({ status: 200, data: true }))
}

/** Responds with the deleted entity, which exists again, or with the existing one. */
export async function restoreEntity(kind: EntityKind, call: Call<EntityBody>): Promise<HandlerResult> {
  const target = { operation: 'restore', address: addressOf(call, kind), represent: true } as const
  return writeOne(kind, call, target, () => ({ status: 200 }))
}

/** The part of a write in which the endpoints differ. */
type WriteTarget = Pick<Write, 'operation' | 'stack_id' | 'address' | 'represent' | 'match'>

/** The response to a write. Without `data`, its body is the entity. */
type Response = Head & { data?: true }

/**
 * Runs the write of a request, in a set with concurrent writes, and responds as `responseTo` says. A dry run responds
 * with a preview. Throws a refusal as a Fault. The response under an Idempotency-Key is stored in the transaction of
 * the write.
 */
async function writeOne(
  kind: EntityKind,
  call: Call<EntityBody>,
  given: Omit<WriteTarget, 'stack_id'>,
  responseTo: (done: Done) => Response,
): Promise<HandlerResult> {
  const target = { ...given, stack_id: await kind.stackOf(call) }
  if (call.isDryRun) return respondDryRun(kind, call, target)
  const { context, keyed } = call
  const write = writeOf(kind, call, target)
  const doneOf = (outcome: Decided): Done => {
    if ('refusal' in outcome) throw new Fault(outcome.refusal)
    call.written.sequence = outcome.done.sequence
    call.shown.add(write.stack_id, outcome.done.id)
    return outcome.done
  }
  const headOf = (done: Done): Response => withWarnings(responseTo(done), done)
  const respond = (done: Done) => resultOf(headOf(done), done)
  if (keyed) {
    write.keyed = { ...keyed.key, responseTo: outcome => keyed.toKept(() => respond(doneOf(outcome))!) }
    keyed.hasBegun = true
  }
  const outcome = await writeQueued(context, write, call)
  if ('replayed' in outcome) return keyed!.replay(outcome.replayed)
  const done = doneOf(outcome)
  return respond(done) ?? respondLargeWritten(kind, call, { stack_id: write.stack_id, done, ...headOf(done) })
}

/** The response with its warnings in a header, because its body is the entity or `true`. */
const withWarnings = <Given extends Head>(response: Given, { warnings }: Done): Given =>
  warnings ? { ...response, headers: { ...response.headers, ...warningHeader(warnings) } } : response

/** The result of a write. Undefined if it shows an entity that is too large to be read with others. */
function resultOf({ status, headers, data }: Response, { representation }: Done): HandlerResult | undefined {
  if (data) return { status, data, ...(headers && { headers }) }
  return isWhole(representation!) ? responseOf(representation, status, headers) : undefined
}

function writeOf(kind: EntityKind, call: Call<EntityBody>, target: WriteTarget): Write {
  const { operation, stack_id, match } = target
  requireWritable(accessOf(call.caller, stack_id), call.body, { clearsRest: operation === 'put', match })
  const { references, erased, handling, rights, actor, request_id } = requestOf(call)
  return newWrite({
    operation,
    stack_id,
    address: target.address,
    body: call.body,
    boundFrom: call.boundFrom,
    if_match: call.preferences.if_match,
    match,
    references,
    erased,
    handling,
    rights,
    mayRead: call.caller.scopes.has(kind.reads),
    // The response to an Idempotency-Key is stored in the same transaction, so it needs the whole entity.
    represent: target.represent && (call.keyed || call.context.db.outer ? 'whole' : true),
    bytes: call.bytes,
    actor,
    request_id,
  })
}

async function respondDryRun(kind: EntityKind, call: Call<EntityBody>, target: WriteTarget): Promise<HandlerResult> {
  const { context, caller, limits, signal, memory } = call
  const write = writeOf(kind, call, { ...target, represent: false })
  const response = await withMemory(memory, reservedBytes, async () => {
    const { outcomes } = await dryRun(context, [write], { limits, signal })
    const outcome = outcomes[0]!
    if ('error' in outcome) throw outcome.error
    if ('refusal' in outcome) throw new Fault(outcome.refusal)
    const { done } = outcome
    if (!done.preview!.isNew) call.shown.add(target.stack_id, done.id)
    return withWarnings({ status: 200, data: dryRunToJson(kind, caller, write.stack_id, done) }, done)
  })
  return response!
}

/**
 * Returns the response of a dry run, without the fields that the role of the caller cannot read. A token that may not
 * read the entity receives the result and the identifiers.
 */
export function dryRunToJson(
  { identifier, reads }: Pick<EntityKind, 'identifier' | 'reads'>,
  caller: Pick<Call['caller'], 'scopes' | 'rights'>,
  stack_id: number,
  { result, id, external_id, version, preview }: Done,
): object {
  const { isNew, ...diff } = preview!
  const identifiers = { dry_run: true, result, id: isNew ? null : identifier.fromUuid(id), external_id }
  if (!caller.scopes.has(reads)) return identifiers
  const access = accessOf(caller, stack_id)
  return { ...identifiers, version, ...(access ? closeDiff(diff, access) : diff) }
}

function closeDiff({ before, after, consents, placeholders }: Omit<WritePreview, 'isNew'>, access: FieldAccess) {
  const close = (values: Record<string, unknown> | null) => values && closeValues(values, access)
  const shownConsents = mayRead(access, 'consents') ? consents : []
  return { before: close(before), after: close(after), placeholders, consents: shownConsents }
}

export async function getEntity(kind: EntityKind, call: Call<AsOfQuery>): Promise<HandlerResult> {
  const { context, signal, body } = call
  const { rights } = call.caller
  const stack_id = await kind.stackOf(call)
  const address = addressOf(call, kind)
  if (body.at !== undefined || body.version !== undefined)
    return (await respondAsOf(kind, call, stack_id, address)) ?? refuse('not_found', `There was no such ${kind.noun}.`)
  const isById = body.links === 'id'
  const entity = await readQueued(context, stack_id, { address, isById, rights }, signal)
  const form = { by: 'id' in address ? 'id' : 'external_id', isById, rights } as const
  const response =
    entity &&
    (isWhole(entity) ? responseOf(entity, 200) : await respondLarge(call, stack_id, form, entity, { status: 200 }))
  if (!response) refuse('not_found', `There is no such ${kind.noun}.`)
  const id = idOf(kind, response)
  call.shown.add(stack_id, id)
  return body.labels ? addLabels(call, { stack_id, id }, response) : response
}

type EntityResponse = Extract<HandlerResult, { json: string }>

/** The internal identifier of the entity in a response, which is its first member. */
function idOf({ identifier }: EntityKind, { json }: Pick<EntityResponse, 'json'>): string {
  const start = `{"${identifier.field}":"`.length
  return identifier.toUuid(json.slice(start, json.indexOf('"', start)))
}

/**
 * Adds the labels to the response with an entity. The ETag stays the same, although labels change without the version.
 */
async function addLabels(
  call: Call<AsOfQuery>,
  { stack_id, id }: { stack_id: number; id: string },
  response: EntityResponse,
): Promise<EntityResponse> {
  try {
    const projection = readableProjection(call.caller, stack_id)
    const added = await labeler(call, { stack_id, projection, isById: call.body.links === 'id' })([id])
    return { ...response, json: `${response.json.slice(0, -1)}${Buffer.concat([...added.of(id)])}}` }
  } catch (error) {
    response.release?.()
    throw error
  }
}

type Whole = SerializedEntity & { json: string }

const isWhole = (entity: SerializedEntity): entity is Whole => entity.json !== undefined

function responseOf({ json, version, definitionsVersion }: Whole, status: number, headers?: Record<string, string>) {
  return { status, json, headers: { ...headers, ETag: entityTag(version) }, definitionsVersion }
}

type Head = { status: number; headers?: Record<string, string> | undefined }

/** Memory reserved for one large entity: up to 512 KiB of attributes, and the other fields of a read. */
const reservedBytes = 1_048_576

/** Reserves memory for a response until it is sent. Frees it if the work fails or returns none. */
export async function withMemory<Response extends object>(
  memory: Call['memory'],
  bytes: number,
  respond: () => Promise<Response | undefined>,
): Promise<(Response & { release: Release }) | undefined> {
  const release = await memory.take(bytes)
  let response: Response | undefined
  try {
    response = await respond()
  } finally {
    if (!response) release()
  }
  return response && { ...response, release }
}

/**
 * Reads the fields of a past state, which may be large, that the caller's role may read. Returns undefined if the
 * entity did not exist then.
 */
function respondAsOf(
  kind: EntityKind,
  call: Call<AsOfQuery>,
  stack_id: number,
  address: Address,
): Promise<HandlerResult | undefined> {
  return withMemory(call.memory, reservedBytes, async () => {
    const response = await readAsOf(call, stack_id, address)
    if (!response) return undefined
    call.shown.add(stack_id, idOf(kind, response))
    const access = accessOf(call.caller, stack_id)
    return { ...response, ...(access && { json: closeEntity(response.json, access) }) }
  })
}

/** Reads an entity that is too large for a batch. Returns undefined if it was deleted in between. */
function respondLarge(
  { context, memory, signal }: Call,
  stack_id: number,
  form: Pick<Identifiers, 'by'> & ReadForm,
  { identifier }: SerializedEntity,
  { status, headers }: Head,
): Promise<EntityResponse | undefined> {
  return withMemory(memory, reservedBytes, async () => {
    const [entity] = await readSerialized(context, stack_id, { ...form, identifiers: [identifier] }, signal)
    return entity && responseOf(entity as Whole, status, headers)
  })
}

type LargeWritten = Head & { stack_id: number; done: Done }

/** Responds with a written entity that is large. It is read after the commit and may include a later write. */
async function respondLargeWritten(
  { noun }: EntityKind,
  call: Call,
  { stack_id, done, status, headers }: LargeWritten,
): Promise<HandlerResult> {
  const written = done.representation!
  const response = await respondLarge(call, stack_id, { by: 'id' }, written, { status, headers }).catch(error => {
    throw new Fault(createRefusal('operation_failed', unreadResponseMessage, { status: 503, outcome: 'done' }), {
      cause: error,
    })
  })
  return (
    response ?? refuse('not_found', `The ${noun} was written, but it was deleted before the response could be read.`)
  )
}

const unreadResponseMessage = 'The write was committed, but the response could not be read. Read the entity.'

function locationOf({ path, identifier }: EntityKind, { params }: Call, { external_id, id }: Done): string {
  const base = path.replace('{stack_key}', params.stack_key ?? '')
  if (external_id !== null) return `${base}/${encodeURIComponent(external_id)}`
  return `${base}/internal/${identifier.fromUuid(id)}`
}
