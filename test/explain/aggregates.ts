import { describe, expect, it } from 'vitest'
import { countFittingSql, countObservedSql } from '../../src/observed/sql.ts'
import { groupByHashSql } from '../../src/queries/aggregates/aggregate.ts'
import { parseAggregate } from '../../src/queries/aggregates/parse.ts'
import type { AggregateBody } from '../../src/queries/aggregates/schema.ts'
import { aggregateStatements } from '../../src/queries/aggregates/select.ts'
import type { Rendered } from '../../src/queries/plan/fragment.ts'
import { planWithValuesSql } from '../../src/queries/plan/reading.ts'
import { expectReads, planOf } from './explain.ts'
import { people, type World } from './world.ts'

const field = (key: string) => `attribute_values.${key}`

/** Aggregates, and the counts of observed keys. */
export function testAggregates(world: World): void {
  const settings = [planWithValuesSql.text, groupByHashSql.text]
  const stepsOf = async (query: Rendered) => (await planOf(world.service.db, { ...query, settings })).steps
  const plan = async (query: Rendered) => (await planOf(world.service.db, { ...query, settings })).text
  const statementsOf = (body: AggregateBody) =>
    aggregateStatements(parseAggregate(body, world.definitions, 0), world.definitions, 0)

  describe('an aggregate', () => {
    it('reads the entities of its organization once', async () => {
      const text = await plan(
        statementsOf({
          group_by: [field('city'), 'state'],
          measures: [{ op: 'sum', field: field('score') }],
        }).aggregate(false),
      )
      expect(text).not.toMatch(/Seq Scan on entities/)
      expect(text.match(/Scan( using \S+)? on entities /g)).toHaveLength(1)
    })

    it('joins the targets of a relationship once, and no others', async () => {
      const sum = { op: 'sum', field: field('score') } as const
      for (const [group_by, rows] of [
        [[field('agent.state'), field('agent')], 1],
        [[field('bought.external_id')], 1],
      ] as const) {
        const text = await plan(statementsOf({ group_by: [...group_by], measures: [sum] }).aggregate(false))
        expect(text).not.toMatch(/Seq Scan on (entities|links)/)
        expect(text.match(/Scan( using \S+)? on links /g)).toHaveLength(rows)
        expect(text.match(/Scan( using \S+)? on entities t1/g)).toHaveLength(rows)
        expect(text).not.toMatch(/SubPlan/)
      }
    })

    it('reads the entities once to test, sort and cut its groups, also as a stream', async () => {
      const { aggregate, stream, probe } = statementsOf({
        group_by: [field('city')],
        measures: [
          { op: 'count_distinct', field: field('score') },
          { op: 'median', field: field('score') },
        ],
        having: [{ measure: 0, $gt: 1 } as { measure: number }],
        sort: [{ measure: 1, direction: 'desc' }],
        limit: 10,
      })
      expect(probe).toBeUndefined()
      const { text, values } = stream(false)
      const selected = { text: text.replace('declare groups no scroll cursor for', ''), values }
      for (const query of [aggregate(false), selected]) {
        const text = await plan(query)
        expect(text).not.toMatch(/Seq Scan on entities/)
        expect(text.match(/Scan( using \S+)? on entities /g)).toHaveLength(1)
      }
    })

    it('looks up the candidates of an index', async () => {
      const { countCandidates, aggregate } = statementsOf({
        filter: { [field('score')]: { $gte: 100, $lt: 200 } },
        group_by: [field('city')],
      })
      expect(await plan(countCandidates!)).toMatch(/terms_pkey/)
      const text = await plan(aggregate(true))
      expect(text).toMatch(/terms_pkey/)
      expect(text).toMatch(/Index Cond: .*\(id = candidate\.id\)/)
      expect(text).not.toMatch(/Seq Scan on (entities|terms)/)
    })

    it('counts no more candidates than it may look up', async () => {
      const { countCandidates } = statementsOf({ filter: { [field('score')]: { $gte: 0 } }, group_by: ['state'] })
      expect(await plan(countCandidates!)).toMatch(/Limit/)
    })

    it('stops at the group that is too much, before it has read the stack', async () => {
      const { probe } = statementsOf({ group_by: [field('number')] })
      const steps = await stepsOf(probe!)
      expect(steps.find(({ type, alias }) => type === 'CTE Scan' && alias === 'g')!.rows).toBe(10_001)
      expect(steps.find(({ index }) => index === 'entities_pkey')!.rows).toBe(10_001)
    })
  })

  describe('the statements of observed keys', () => {
    it('read a portion of the entities of one stack', async () => {
      const values = [world.shop.id, 0, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 1_000, ['number'], 10_001, 3]
      // Each of the people has six values.
      await expectReads(world.service.db, countObservedSql, values, 7_010)
    })

    it('read the entities of one stack', async () => {
      const values = [world.shop.id, 0, 'number', 'text', false, 10]
      await expectReads(world.service.db, countFittingSql, values, people + 10)
    })
  })
}
