import { entityTag } from '../entity-tag.ts'
import { fail } from '../errors.ts'
import type { Answer, Call } from '../http/route.ts'
import type { Kind } from './kind.ts'
import { readQueued } from './queues.ts'
import type { Shown } from './shown.ts'
import type { Address, Done, EntityBody } from './write.ts'
import { writeOne } from './write-one.ts'

/** Whom a path addresses. */
export function addressOf({ params }: Pick<Call, 'params'>, { identifier }: Pick<Kind, 'identifier'>): Address {
  const internal = params[identifier.name]
  return internal === undefined ? { external_id: params.external_id! } : { id: identifier.toUuid(internal) }
}

/** 201, or 200 where an event was there already, equal. An entity without an external identifier has its internal address. */
export async function createEntity(kind: Kind, call: Call<EntityBody>): Promise<Answer> {
  const { external_id } = call.body
  const address = external_id ? { external_id } : null
  const stack_id = await kind.stackOf(call)
  const done = await writeOne(call, { operation: 'create', stack_id, address, represent: true })
  if (done.result === 'unchanged') return answerShown(done.standing!, 200)
  return answerShown(done.standing!, 201, { Location: locationOf(kind, call, done) })
}

/** Creates who is not there (201), merges like PATCH who is (200). */
export async function upsertEntity(kind: Kind, call: Call<EntityBody & { external_id: string }>): Promise<Answer> {
  const address = { external_id: call.body.external_id }
  const stack_id = await kind.stackOf(call)
  const done = await writeOne(call, { operation: 'upsert', stack_id, address, represent: true })
  if (done.result !== 'created') return answerShown(done.standing!, 200)
  return answerShown(done.standing!, 201, { Location: locationOf(kind, call, done) })
}

/** Said where the preference made the answer another (RFC 7240, 3): everywhere else there is no choice. */
const applied = { 'Preference-Applied': 'return=representation' }

export async function updateEntity(kind: Kind, operation: 'put' | 'patch', call: Call<EntityBody>): Promise<Answer> {
  const represent = call.preferences.representation
  const stack_id = await kind.stackOf(call)
  const done = await writeOne(call, { operation, stack_id, address: addressOf(call, kind), represent })
  if (represent) return answerShown(done.standing!, 200, applied)
  return { status: 200, data: true, headers: { ETag: entityTag(done.version) } }
}

export async function deleteEntity(kind: Kind, call: Call<EntityBody>): Promise<Answer> {
  const stack_id = await kind.stackOf(call)
  await writeOne(call, { operation: 'delete', stack_id, address: addressOf(call, kind), represent: false })
  return { status: 200, data: true }
}

export async function getEntity(kind: Kind, call: Call): Promise<Answer> {
  const { db, caller, signal } = call
  const stack_id = await kind.stackOf(call)
  const shown = await readQueued(db, caller.organization.id, stack_id, addressOf(call, kind), signal)
  if (!shown) return fail('not_found', `There is no such ${kind.noun}.`)
  return answerShown(shown, 200)
}

function answerShown({ json, version }: Shown, status: number, headers: Record<string, string> = {}): Answer {
  return { status, json, headers: { ...headers, ETag: entityTag(version) } }
}

function locationOf({ path, identifier }: Kind, { params }: Call, { external_id, id }: Done): string {
  const base = path.replace('{stack_key}', params.stack_key ?? '')
  if (external_id !== null) return `${base}/${encodeURIComponent(external_id)}`
  return `${base}/internal/${identifier.fromUuid(id)}`
}
