import { expect, it } from 'vitest'
import { everything, filterValuesOf } from '../../src/changes/selection.ts'
import { readSegmentChangesSql } from '../../src/changes/sql.ts'
import type { Statement, Transaction } from '../../src/db/db.ts'
import { parseFilter } from '../../src/queries/grammar/parse.ts'
import { readMatchesOf, readNextMatches } from '../../src/queries/plan/membership.ts'
import { deleteMembershipsSql, insertSegmentChecksSql } from '../../src/rights/erasure/erased-tables-sql.ts'
import {
  deleteMembersSql,
  forgetSegmentMembersSql,
  readBatchSql,
  readFormerTargetsSql,
  readMembersBetweenSql,
  readMembershipsSql,
  readSourcesOfSql,
  readSourcesSql,
  readTargetsOfSql,
} from '../../src/segments/sql.ts'
import { expectReads } from './explain.ts'
import { people, personId, type World } from './world.ts'

const ids = Array.from({ length: 100 }, (_, n) => personId(1 + (n * people) / 100))

/** The members of segments, and the follower that keeps them. */
export function testSegments(world: World): void {
  // The service analyzes the entities itself as an organization grows.
  const unanalyzed = ['changes', 'links', 'segment_members', 'segment_changes', 'segment_checks', 'followers']

  it.each([
    ['without', unanalyzed],
    ['with', []],
  ])('the statements of segments read only what they return, %s statistics', async (kind, unknownTables) => {
    const { attributes } = world
    const [first, last] = [personId(1_000), personId(2_000)]
    const selection = { ...everything, segments: { ids: [1], since: 0 } }
    const statements: [Statement, unknown[], number][] = [
      [readBatchSql, [5_000, people, 1_000], 1_000],
      [readSegmentChangesSql, [5_000, 5_500, 50, 1_048_576, ...filterValuesOf(selection)], 500],
      [readMembershipsSql, [ids], 3 * ids.length],
      [readMembersBetweenSql, [[1], first, last], 1_000],
      [readSourcesSql, [ids, [attributes.agent], 1_001], 1_001],
      [readSourcesOfSql, [personId(1), attributes.agent, personId(people / 2), 1_000], 1_000],
      [deleteMembersSql, [ids.map(() => 9), ids], ids.length],
      [readTargetsOfSql, [ids, [attributes.agent]], ids.length],
      [readFormerTargetsSql, [5_000, 6_000, [`${attributes.agent}`]], 1_000],
      [insertSegmentChecksSql, [[personId(people - 1)]], 3],
      [deleteMembershipsSql, [[personId(7_001)]], 6],
    ]
    // Without statistics, a batch reads all entries of the segment. It runs once for a deleted segment, behind the writes.
    if (kind === 'with') statements.push([forgetSegmentMembersSql, [[2], 100], 100])
    for (const [sent, values, max] of statements)
      await expectReads(world.service.db, sent, [world.shop.id, ...values], max, { unknownTables })
  })

  it('people are tested by their ids, or in order of id, whatever the filter', async () => {
    const { service, definitions } = world
    const filters = [
      { 'attribute_values.score': { $gte: 5 } },
      { 'attribute_values.referrer': { $some: { 'attribute_values.score': 1 } } },
      { $not: { external_id: 'p7' } },
    ]
    const conditions = filters.map(filter => parseFilter(filter, definitions, 0).condition)
    const tested: [Statement, unknown[]][] = []
    const tx: Pick<Transaction, 'query'> = {
      query: async (sent, values) => {
        if (values.length > 0) tested.push([sent, values])
        return []
      },
    }
    await readMatchesOf(tx as Transaction, definitions, conditions, ids)
    await readNextMatches(tx as Transaction, definitions, conditions, { after: personId(10), limit: 100 })
    expect(tested).toHaveLength(2)
    for (const [sent, values] of tested) await expectReads(service.db, sent, values, ids.length + 1)
  })
}
