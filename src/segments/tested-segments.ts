import { type Definitions, peopleStackId, type Segment } from '../organizations/definitions.ts'
import { type Condition, visit } from '../queries/grammar/grammar.ts'
import { parseSegmentFilter } from '../queries/grammar/parse.ts'
import { hashOfCondition, type RelationshipLevel, relationshipLevels } from '../queries/plan/membership.ts'

/** A segment with a valid filter. `hash` identifies the meaning of the filter. */
export type TestedSegment = { segment: Segment; isRelative: boolean; condition: Condition; hash: string }

/**
 * Parses all segments under the definitions. `invalid` has the segments whose filters the definitions no longer allow.
 */
export function parseSegments(definitions: Definitions): { tested: TestedSegment[]; invalid: number[] } {
  const tested: TestedSegment[] = []
  const invalid: number[] = []
  for (const segment of definitions.segments) {
    // Relative times count from a fixed moment, so that the hash does not depend on the time.
    const parsed = parseSegmentFilter(segment, definitions, 0)
    if (!parsed) invalid.push(segment.id)
    else {
      const isRelative = parsed.evaluated_at !== undefined
      const hash = hashOfCondition(parsed.condition, definitions)
      const { condition } = parsed
      tested.push({ segment, isRelative, condition, hash: isRelative ? `${hash} ${definitions.time_zone}` : hash })
    }
  }
  return { tested, invalid }
}

/** The conditions of segments at a time. */
export type ConditionsAt = {
  definitions: Definitions
  ids: number[]
  conditions: Condition[]
  levels: RelationshipLevel[]
  /** Whether a condition depends on other people's answers for an address. */
  asksAddresses: boolean
}

/** The conditions of segments whose relative times count from `nowMs`. */
export function conditionsAt(
  segments: readonly TestedSegment[],
  definitions: Definitions,
  nowMs: number,
): ConditionsAt {
  const conditions = segments.map(({ segment, isRelative, condition }) =>
    isRelative ? parseSegmentFilter(segment, definitions, nowMs)!.condition : condition,
  )
  const ids = segments.map(({ segment }) => segment.id)
  const asksAddresses = conditions.some(each =>
    [...visit(each, peopleStackId)].some(({ condition: { kind } }) => kind === 'contactable'),
  )
  return { definitions, ids, conditions, levels: relationshipLevels(conditions, definitions), asksAddresses }
}
