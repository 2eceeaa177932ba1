import { computingRefusal } from '../changes/read-changes.ts'
import type { FindSegments } from '../changes/selection.ts'
import { currentDefinitions, type Definitions, peopleStackId, type Segment } from '../organizations/definitions.ts'
import { parseFilter } from '../queries/grammar/parse.ts'
import { requireNamed, scopesOf } from '../queries/grammar/scopes.ts'
import type { Rights } from '../route/field-rights.ts'
import { Fault, pointer, refuse } from '../values/errors.ts'
import { throwIfBroken } from './segments.ts'
import { readSegmentStartsSql } from './sql.ts'

/** Finds the segments that a feed asks for. Throws a Fault: 400 for an unknown key, 409 for an invalid filter, 503 until it is computed. */
export const findSegments: FindSegments = async ({ context, caller, signal }, keys) => {
  const { db, organization_id } = context
  const definitions = await currentDefinitions(context, signal)
  const found = keys.map(key => definitions.segments.find(segment => segment.key === key))
  const unknown = found.indexOf(undefined)
  if (unknown !== -1)
    refuse('invalid_parameter', 'The query has invalid values. See details.', {
      details: [{ path: pointer('segment', unknown), message: 'is not the key of a segment' }],
    })
  const segments = found as Segment[]
  const ids = [...new Set(segments.map(({ id }) => id))].sort((a, b) => a - b)
  const scopes = new Set(
    segments.flatMap((segment, index) => [...scopesOfSegment(segment, definitions, caller, pointer('segment', index))]),
  )
  const starts = await db.query<{ since: number | null }>(readSegmentStartsSql, [organization_id, ids], signal)
  if (starts.length < ids.length || starts.some(({ since }) => since === null)) throw new Fault(computingRefusal())
  return { ids, scopes: [...scopes], since: Math.max(...starts.map(({ since }) => since!)) }
}

/** The scopes that read what the filter of a segment tests. Throws a Fault of 403 if the role of the caller closes a field of it. */
function scopesOfSegment(segment: Segment, definitions: Definitions, caller: Rights, path: string) {
  throwIfBroken(definitions, segment)
  const { condition, named } = parseFilter(segment.filter, definitions, peopleStackId)
  requireNamed(
    caller,
    named.map(field => ({ ...field, path })),
  )
  return scopesOf(condition, peopleStackId)
}
