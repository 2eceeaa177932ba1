import type { Within } from '../db/context.ts'
import type { Transaction } from '../db/db.ts'
import { type Matches, readNextMatches } from '../queries/plan/membership.ts'
import { lastId } from '../values/formats.ts'
import { deleteMembersSql, insertMembersSql, insertSegmentChangesSql, readMembersBetweenSql } from './sql.ts'
import type { ConditionsAt } from './tested-segments.ts'

/** The membership of a person in a segment. */
export type Membership = { segment_id: number; person_id: string }
export type Differences = { entered: Membership[]; left: Membership[] }

/**
 * Compares the people who satisfy the conditions of the segments with the members. A person who does not exist
 * satisfies none.
 */
export function compare(
  ids: readonly number[],
  people: readonly Matches[],
  members: readonly Membership[],
): Differences {
  const keyOf = ({ segment_id, person_id }: Membership) => `${segment_id} ${person_id}`
  const before = new Set(members.map(keyOf))
  const now = new Set<string>()
  const entered: Membership[] = []
  for (const { id: person_id, matches } of people)
    for (const [index, segment_id] of ids.entries()) {
      if (!matches[index]) continue
      const membership = { segment_id, person_id }
      now.add(keyOf(membership))
      if (!before.has(keyOf(membership))) entered.push(membership)
    }
  return { entered, left: members.filter(membership => !now.has(keyOf(membership))) }
}

/** The items in parts of at most `size`. */
export function* partsOf<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let first = 0; first < items.length; first += size) yield items.slice(first, first + size)
}

/** The number of people who are compared together. */
export const peoplePerSet = 1_000

/**
 * Compares the next set of people after an id with the members. `until` is the id at the end of the set, or
 * {@link lastId} for the last set.
 */
export async function compareNext(
  tx: Transaction,
  { definitions, ids, conditions }: Pick<ConditionsAt, 'definitions' | 'ids' | 'conditions'>,
  after: string,
): Promise<Differences & { until: string }> {
  const people = await readNextMatches(tx, definitions, conditions, { after, limit: peoplePerSet })
  const until = people.length < peoplePerSet ? lastId : people.at(-1)!.id
  const members = await tx.query<Membership>(readMembersBetweenSql, [definitions.organization_id, ids, after, until])
  return { ...compare(ids, people, members), until }
}

export async function storeMembers({ tx, organization_id }: Within, { entered, left }: Differences): Promise<void> {
  if (entered.length > 0) await tx.query(insertMembersSql, columnsOf(organization_id, entered))
  if (left.length > 0) await tx.query(deleteMembersSql, columnsOf(organization_id, left))
}

/** Stores the entries and exits, and reports them with the number of the change that `causeOf` returns. */
export async function tell(
  within: Within,
  differences: Differences,
  causeOf: (membership: Membership) => number,
): Promise<void> {
  const { tx, organization_id } = within
  await storeMembers(within, differences)
  const told = [...differences.entered, ...differences.left]
  if (told.length > 0)
    await tx.query(insertSegmentChangesSql, [
      ...columnsOf(organization_id, told),
      told.map(causeOf),
      told.map((_, index) => index < differences.entered.length),
    ])
}

const columnsOf = (organization_id: number, memberships: readonly Membership[]) => [
  organization_id,
  memberships.map(({ segment_id }) => segment_id),
  memberships.map(({ person_id }) => person_id),
]
