import { type Definitions, peopleStackId, type Segment } from '../organizations/definitions.ts'
import { type Condition, visit } from '../queries/grammar/grammar.ts'
import { parseSegmentFilter } from '../queries/grammar/parse.ts'
import { hashOfCondition, type RelationshipLevel, relationshipLevels } from '../queries/plan/membership.ts'

/** A segment with a valid filter. `hash` stands for what the filter means. */
export type TestedSegment = { segment: Segment; isRelative: boolean; hash: string }

/** The segments under some definitions. `invalid` are those whose filters the definitions no longer allow. */
export type ParsedSegments = { definitions: Definitions; tested: TestedSegment[]; invalid: number[] }

const parsedSegments = new WeakMap<Definitions, ParsedSegments>()

/** All segments under the definitions. */
export function parseSegments(definitions: Definitions): ParsedSegments {
  const known = parsedSegments.get(definitions)
  if (known) return known
  const tested: TestedSegment[] = []
  const invalid: number[] = []
  for (const segment of definitions.segments) {
    // Relative times count from the same moment in every hash.
    const parsed = parseSegmentFilter(segment, definitions, 0)
    if (!parsed) invalid.push(segment.id)
    else {
      const isRelative = parsed.evaluated_at !== undefined
      const hash = hashOfCondition(parsed.condition, definitions)
      tested.push({ segment, isRelative, hash: isRelative ? `${hash} ${definitions.time_zone}` : hash })
    }
  }
  const parsed = { definitions, tested, invalid }
  parsedSegments.set(definitions, parsed)
  return parsed
}

/** The conditions of segments at a time. */
export type ConditionsAt = {
  definitions: Definitions
  ids: number[]
  conditions: Condition[]
  levels: RelationshipLevel[]
  /** Whether a condition depends on what others have answered for an address. */
  asksAddresses: boolean
}

/** The conditions of segments whose relative times count from `nowMs`. */
export function conditionsAt(
  segments: readonly TestedSegment[],
  definitions: Definitions,
  nowMs: number,
): ConditionsAt {
  const conditions = segments.map(({ segment }) => parseSegmentFilter(segment, definitions, nowMs)!.condition)
  const ids = segments.map(({ segment }) => segment.id)
  const asksAddresses = conditions.some(each =>
    [...visit(each, peopleStackId)].some(({ condition: { kind } }) => kind === 'contactable'),
  )
  return { definitions, ids, conditions, levels: relationshipLevels(conditions, definitions), asksAddresses }
}
