import { entityTag } from '../entity-tag.ts'
import { Fault, fail, refuse } from '../errors.ts'
import type { Call, HandlerResult } from '../http/pipeline/route.ts'
import type { EntityKind } from './entity-kind.ts'
import { type Identifiers, readSerialized, type SerializedEntity } from './entity-reader.ts'
import { readQueued } from './request-coalescing.ts'
import { writeOne } from './write-one.ts'
import type { Address, Done, EntityBody } from './write-request.ts'

/** Whom a path addresses. */
export function addressOf({ params }: Pick<Call, 'params'>, { identifier }: Pick<EntityKind, 'identifier'>): Address {
  const internal = params[identifier.name]
  return internal === undefined ? { external_id: params.external_id! } : { id: identifier.toUuid(internal) }
}

/** 201, or 200 where an event was there already, equal. An entity without an external identifier has its internal address. */
export async function createEntity(kind: EntityKind, call: Call<EntityBody>): Promise<HandlerResult> {
  const { external_id } = call.body
  const address = external_id ? { external_id } : null
  const stack_id = await kind.stackOf(call)
  const done = await writeOne(call, { operation: 'create', stack_id, address, represent: true })
  const created = done.result !== 'unchanged'
  const head = created ? { status: 201, headers: { Location: locationOf(kind, call, done) } } : { status: 200 }
  return answerWritten(kind, call, { stack_id, done, ...head })
}

/** Creates who is not there (201), merges like PATCH who is (200). */
export async function upsertEntity(
  kind: EntityKind,
  call: Call<EntityBody & { external_id: string }>,
): Promise<HandlerResult> {
  const address = { external_id: call.body.external_id }
  const stack_id = await kind.stackOf(call)
  const done = await writeOne(call, { operation: 'upsert', stack_id, address, represent: true })
  const created = done.result === 'created'
  const head = created ? { status: 201, headers: { Location: locationOf(kind, call, done) } } : { status: 200 }
  return answerWritten(kind, call, { stack_id, done, ...head })
}

/** Said where the preference made the answer another (RFC 7240, 3): everywhere else there is no choice. */
const applied = { 'Preference-Applied': 'return=representation' }

export async function updateEntity(
  kind: EntityKind,
  operation: 'put' | 'patch',
  call: Call<EntityBody>,
): Promise<HandlerResult> {
  const represent = call.preferences.representation
  const stack_id = await kind.stackOf(call)
  const done = await writeOne(call, { operation, stack_id, address: addressOf(call, kind), represent })
  if (represent) return answerWritten(kind, call, { stack_id, done, status: 200, headers: applied })
  return { status: 200, data: true, headers: { ETag: entityTag(done.version) } }
}

export async function deleteEntity(kind: EntityKind, call: Call<EntityBody>): Promise<HandlerResult> {
  const stack_id = await kind.stackOf(call)
  await writeOne(call, { operation: 'delete', stack_id, address: addressOf(call, kind), represent: false })
  return { status: 200, data: true }
}

export async function getEntity(kind: EntityKind, call: Call): Promise<HandlerResult> {
  const { db, caller, signal } = call
  const stack_id = await kind.stackOf(call)
  const address = addressOf(call, kind)
  const shown = await readQueued(db, caller.organization.id, stack_id, address, signal)
  const by = 'id' in address ? 'id' : 'external_id'
  const answer = shown && (isWhole(shown) ? answerOf(shown, 200) : await answerLarge(call, stack_id, by, shown, 200))
  return answer ?? fail('not_found', `There is no such ${kind.noun}.`)
}

type Whole = SerializedEntity & { json: string }

const isWhole = (shown: SerializedEntity): shown is Whole => shown.json !== undefined

function answerOf({ json, version }: Whole, status: number, headers: Record<string, string> = {}) {
  return { status, json, headers: { ...headers, ETag: entityTag(version) } }
}

/** What one large entity takes while it is read and sent: of 512 KiB, and what a read shows besides. */
const largeBytes = 1_048_576

/** Reads an entity by itself that was too large to be read beside others; undefined where it is gone by now. */
async function answerLarge(
  { db, caller, memory, signal }: Call,
  stack_id: number,
  by: Identifiers['by'],
  { identifier }: SerializedEntity,
  status: number,
  headers?: Record<string, string>,
): Promise<HandlerResult | undefined> {
  const release = await memory.wait(largeBytes)
  try {
    const identifiers = [identifier]
    const [shown] = await readSerialized(db, caller.organization.id, stack_id, { by, identifiers }, signal)
    if (shown) return { ...answerOf(shown as Whole, status, headers), release }
  } catch (error) {
    release()
    throw error
  }
  release()
  return undefined
}

type Written = { stack_id: number; done: Done; status: number; headers?: Record<string, string> }

/** The entity that was written. A large one is read after the write: it may be shown with a later write, and its version. */
async function answerWritten(
  { noun }: EntityKind,
  call: Call,
  { stack_id, done, status, headers }: Written,
): Promise<HandlerResult> {
  const shown = done.standing!
  if (isWhole(shown)) return answerOf(shown, status, headers)
  const answer = await answerLarge(call, stack_id, 'id', shown, status, headers).catch(error => {
    throw new Fault(refuse('operation_failed', writtenUnshown, { status: 503 }), { cause: error })
  })
  return answer ?? fail('not_found', `The ${noun} was written, and deleted before it could be read for the answer.`)
}

const writtenUnshown = 'The write was carried out, but its answer could not be read. Read the entity.'

function locationOf({ path, identifier }: EntityKind, { params }: Call, { external_id, id }: Done): string {
  const base = path.replace('{stack_key}', params.stack_key ?? '')
  if (external_id !== null) return `${base}/${encodeURIComponent(external_id)}`
  return `${base}/internal/${identifier.fromUuid(id)}`
}
