import { isDeepStrictEqual } from 'node:util'
import { computingRefusal } from '../changes/read-changes.ts'
import { type FindSegments, requireSegmentScopes } from '../changes/selection.ts'
import { segmentsFollowerName } from '../changes/sql.ts'
import {
  changeDefinitions,
  type DefinitionCall,
  differences,
  throwKeyTaken,
  throwTooMany,
} from '../organizations/change-definitions.ts'
import {
  currentDefinitions,
  type Definitions,
  peopleStackId,
  readScopeOf,
  type Segment,
} from '../organizations/definitions.ts'
import { namesSegment } from '../queries/grammar/grammar.ts'
import { parseFilter, parseSegmentFilter, type UndeclaredKey } from '../queries/grammar/parse.ts'
import { requireNamed, scopesOf, suggestField } from '../queries/grammar/scopes.ts'
import { defaultSearchMs, findUnusedKeys } from '../queries/grammar/undeclared-keys.ts'
import { throwUnusedKeys, warningOf } from '../queries/pages/handlers.ts'
import type { Call } from '../route/call.ts'
import type { Rights } from '../route/field-rights.ts'
import { listPage } from '../route/result.ts'
import { type Detail, Fault, pointer, refuse, throwBrokenRule } from '../values/errors.ts'
import type { SegmentBody, SegmentPatch } from './schema.ts'
import {
  deleteSegmentSql,
  insertSegmentSql,
  insertSegmentsPositionSql,
  readMembersSql,
  readSegmentStartsSql,
  updateSegmentSql,
} from './sql.ts'

const maxSegments = 200
/** The maximum size of a filter. Every process keeps the segments of its organizations in memory. */
const maxFilterBytes = 32_768

/** Returns the segment with that key. Throws a Fault of 404 if there is none. */
export function findSegment({ segments }: Definitions, key: string): Segment {
  return segments.find(segment => segment.key === key) ?? refuse('not_found', 'There is no such segment.')
}

/** A segment as a read shows it. */
export function segmentToJson({ key, name, description, filter, created_at, updated_at }: Segment) {
  return { key, name, description, filter, created_at, updated_at }
}

/** Creates a segment. Throws a Fault of 400 or 409 if the body breaks a rule. */
export async function createSegment(call: DefinitionCall, body: SegmentBody): Promise<Segment> {
  const { key, name = key, description = null, filter } = body
  const definitions = await changeDefinitions(call, async (current, at, tx) => {
    if (current.segments.some(segment => segment.key === key)) throwKeyTaken('is the key of another segment')
    if (current.segments.length >= maxSegments)
      throwTooMany('The organization has reached its limit of segments. Delete one first.', 'segments', maxSegments)
    const id = current.last_segment_id + 1
    const after = { key, name, description, filter }
    throwIfInvalid(withSegment(current, { id, ...after, filter_changed_at: at, created_at: at, updated_at: at }), key)
    await tx.query(insertSegmentsPositionSql, [call.organization_id, segmentsFollowerName])
    const values = [call.organization_id, id, key, name, description, JSON.stringify(filter), at]
    const store = (version: number) => tx.query(insertSegmentSql, [...values, version])
    return [{ subject: 'segment', id, operation: 'create', before: {}, after, store }]
  })
  return findSegment(definitions, key)
}

/** Changes a segment. Throws a Fault of 404 for an unknown key, and of 400 if the filter breaks a rule. */
export async function patchSegment(call: DefinitionCall, key: string, patch: SegmentPatch): Promise<Segment> {
  const definitions = await changeDefinitions(call, (current, at, tx) => {
    const segment = findSegment(current, key)
    // PostgreSQL changes the order of an object's members.
    const isSame = patch.filter === undefined || isDeepStrictEqual(patch.filter, segment.filter)
    const changed = differences(segment, isSame ? { ...patch, filter: segment.filter } : patch)
    if (!changed) return []
    const next = { ...segment, ...patch }
    if (!isSame) throwIfInvalid(withSegment(current, next), key, current)
    const { id, name, description, filter } = next
    const values = [call.organization_id, id, name, description, JSON.stringify(filter), at]
    const store = (version: number) => tx.query(updateSegmentSql, [...values, version, isSame ? null : at])
    return [{ subject: 'segment', id, operation: 'update', ...changed, store }]
  })
  return findSegment(definitions, key)
}

/** Deletes a segment. Throws a Fault of 404 for an unknown key, and of 409 if another filter names the segment. */
export async function deleteSegment(call: DefinitionCall, key: string): Promise<void> {
  await changeDefinitions(call, (current, at, tx) => {
    const { id, name, description, filter } = findSegment(current, key)
    const user = current.segments.find(segment => namesSegment(segment.filter, key))
    if (user)
      refuse('invalid_parameter', `The segment ${user.key} names this one in its filter. Change that filter first.`, {
        status: 409,
        details: [{ path: '/segment_key', message: `is named by the segment ${user.key}` }],
      })
    const before = { key, name, description, filter }
    const store = (version: number) => tx.query(deleteSegmentSql, [call.organization_id, id, at, version])
    return [{ subject: 'segment', id, operation: 'delete', before, after: {}, store }]
  })
}

/**
 * The warnings about undeclared keys in the filter of a segment that no entity carries. Throws a Fault of 400 with them
 * under `handling=strict`, and of 403 for a field that the caller's role closes. An invalid filter has no warnings,
 * because its write is refused.
 */
export async function findWarnings(
  { context, caller, signal, preferences }: Call<unknown>,
  key: string,
  filter: unknown,
): Promise<Detail[]> {
  const definitions = await currentDefinitions(context, signal)
  const parsed = parseSegmentFilter({ key, filter }, definitions)
  if (!parsed) return []
  requireNamed(caller, parsed.named)
  const isStrict = preferences.handling === 'strict'
  // A request with an Idempotency-Key is one transaction, and a search that is cancelled at its time limit would abort
  // it. The search therefore uses the outer connection.
  const unused = await findUnusedKeys(context.db.outer ?? context.db, definitions, parsed.undeclared, {
    signal,
    searchMs: isStrict ? undefined : defaultSearchMs,
  })
  const hinted = unused.map(each => ({ ...each, hint: hintFor(each) }))
  if (isStrict && unused.length > 0) throwUnusedKeys(hinted)
  return hinted.map(warningOf)

  /** A caller that writes definitions may lack the scope that reads the entities. */
  function hintFor({ stack_id, key }: UndeclaredKey): string {
    return caller.scopes.has(readScopeOf(stack_id)) ? suggestField(caller, definitions, { stack_id, name: key }) : ''
  }
}

/** The definitions with a new or changed segment. */
function withSegment(definitions: Definitions, segment: Segment): Definitions {
  const others = definitions.segments.filter(({ id }) => id !== segment.id)
  return { ...definitions, segments: [...others, segment] }
}

/**
 * Throws 400 if the filter of the segment is invalid or makes the filter of another segment invalid, because together
 * they may nest too deeply.
 */
function throwIfInvalid(next: Definitions, key: string, before?: Definitions): void {
  const { filter } = findSegment(next, key)
  if (Buffer.byteLength(JSON.stringify(filter)) > maxFilterBytes)
    throwBrokenRule('/filter', `must be at most ${maxFilterBytes} bytes of JSON`)
  parseFilter(filter, next, peopleStackId, { ofSegment: key })
  if (!before) return
  for (const segment of next.segments) {
    if (segment.key === key || faultOf(before, segment)) continue
    const fault = faultOf(next, segment)
    if (fault) throwBrokenRule('/filter', `makes the segment ${segment.key} invalid: ${fault}`)
  }
}

/** Returns a description of the faults of a segment's filter. Undefined if it is valid. */
function faultOf(definitions: Definitions, { key, filter }: Segment): string | undefined {
  try {
    parseFilter(filter, definitions, peopleStackId, { ofSegment: key })
    return undefined
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const { message, details } = error.refusal
    return details.map(({ path, message }) => `${path} ${message}`).join('; ') || message
  }
}

/** Throws 409 for a segment whose filter has become invalid, for example because it names an archived consent type. */
export function throwIfBroken(definitions: Definitions, segment: Segment): void {
  const fault = faultOf(definitions, segment)
  if (fault === undefined) return
  refuse(
    'invalid_parameter',
    `The filter of the segment ${segment.key} is not valid any more. Change it: PATCH /v1/segments/${segment.key}.`,
    { status: 409, details: [{ path: '/segment_key', message: fault }] },
  )
}

/**
 * Finds the segments that a feed requests. Throws a Fault of 400 for an unknown key, of 409 for an invalid filter, and
 * of 503 until the members are computed.
 */
export const findSegments: FindSegments = async ({ context, caller, signal }, keys) => {
  const { db, organization_id } = context
  const definitions = await currentDefinitions(context, signal)
  const found = keys.map(key => definitions.segments.find(segment => segment.key === key))
  const unknown = found.indexOf(undefined)
  if (unknown !== -1) throwBrokenRule(pointer('segment', unknown), 'is not the key of a segment')
  const segments = found as Segment[]
  const ids = [...new Set(segments.map(({ id }) => id))].sort((a, b) => a - b)
  const scopes = new Set(
    segments.flatMap((segment, index) => [...scopesOfSegment(segment, definitions, caller, pointer('segment', index))]),
  )
  const starts = await db.query<{ since: number | null }>(readSegmentStartsSql, [organization_id, ids], signal)
  if (starts.length < ids.length || starts.some(({ since }) => since === null)) throw new Fault(computingRefusal())
  return { ids, scopes: [...scopes], since: Math.max(...starts.map(({ since }) => since!)) }
}

/**
 * Lists the members of a segment according to its feed. Throws a Fault of 404 for an unknown key, of 403 without the
 * rights to the fields of its filter, of 409 for an invalid filter, and of 503 until the members are computed.
 */
export async function listMembers({ context, caller, signal, params, shown }: Call, after: string, limit: number) {
  const definitions = await currentDefinitions(context, signal)
  const segment = findSegment(definitions, params.segment_key!)
  requireSegmentScopes(caller, scopesOfSegment(segment, definitions, caller, '/segment_key'))
  type Members = { head: number; log_id: string; people: string[] }
  const values = [context.organization_id, segment.id, after, limit + 1, segmentsFollowerName]
  const [found] = await context.db.query<Members>(readMembersSql, values, signal)
  if (!found) throw new Fault(computingRefusal())
  const { head, log_id } = found
  const { items: people, has_more } = listPage(found.people, limit)
  shown.addAll(peopleStackId, people)
  return { people, has_more, head, log_id }
}

/**
 * The scopes that read the entities of a segment's filter. Throws a Fault of 403 if the caller's role closes one of its
 * fields.
 */
function scopesOfSegment(segment: Segment, definitions: Definitions, caller: Rights, path: string) {
  throwIfBroken(definitions, segment)
  const { condition, named } = parseFilter(segment.filter, definitions, peopleStackId)
  requireNamed(
    caller,
    named.map(field => ({ ...field, path })),
  )
  return scopesOf(condition, peopleStackId)
}
