import { beforeAll, describe, expect, it } from 'vitest'
import { contextOf } from '../../src/db/context.ts'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import type { Position } from '../../src/entities/read/pagination.ts'
import { projectionOf } from '../../src/entities/read/projection.ts'
import { reloadDefinitions } from '../../src/organizations/definitions.ts'
import { maxFewCandidates } from '../../src/queries/pages/count.ts'
import { type PageRequest, readFilteredPage } from '../../src/queries/pages/page.ts'
import { type Knowledge, type Plan, planOf, rowsFrom } from './explain.ts'
import { type Sent, statementsOf } from './sent.ts'
import { ofLevel, ofTier, people, personId, type World } from './world.ts'

const bought = (filter: unknown) => ({ 'attribute_values.bought': { $some: filter } })
const ofProduct = (filter: unknown) => ({ 'attribute_values.product': { $some: filter } })
const contains7 = { 'attribute_values.note': { $contains: '7' } }
const level = { 'attribute_values.level': 'level 1' }
const tier = { 'attribute_values.tier': 'tier 1' }

/** Neither is used of the rows of a stack. A bitmap of the few links of an entity is as good as their index. */
const scanOfStack = /Seq Scan on|Bitmap Heap Scan on (entities|terms)/

const size = 50
/** A page of 50 reads one more entity, to tell whether there are more. */
const ofPage = size + 1

const states: [string, Knowledge][] = [
  ['with', {}],
  ['without', { unknownTables: ['entities', 'links', 'terms'] }],
]

type Request = Omit<Partial<PageRequest>, 'position'> & { position?: Partial<Position> }

/** Filters, and sorted pages of them. */
export function testFilters(world: World): void {
  const { service } = world

  const sentFor = ({ position, ...request }: Request, change?: Parameters<typeof statementsOf>[3]) =>
    statementsOf(
      service.db,
      world.shop.id,
      context =>
        readFilteredPage(context, {
          stack_id: 0,
          filter: {},
          ...request,
          position: { direction: 'desc', size, ...position },
        }),
      change,
    )

  const plansOf = async (sent: readonly Sent[], knowledge: Knowledge = {}) => {
    const plans: Plan[] = []
    for (const each of sent) plans.push(await planOf(service.db, each, knowledge))
    return plans
  }

  /** The plan of a page of one statement. */
  const planFor = async (request: Request, knowledge: Knowledge = {}) => {
    const [plan, ...others] = await plansOf(await sentFor(request), knowledge)
    expect(others).toEqual([])
    return plan!
  }

  const expectNoScan = ({ text }: Plan) => expect(text).not.toMatch(/Seq Scan on (entities|links|terms)/)

  /** Expects that every entity that a plan reads of the alias e is looked up by its id. */
  const expectLookUps = ({ steps, text }: Plan) => {
    for (const step of steps.filter(({ alias, loops }) => alias === 'e' && loops > 0))
      expect(step.condition, text).toMatch(/\(id = \w+\.(id|entity_id|source_id)\)/)
  }

  /** Expects that a page uses only index scans, and that the index of the condition finds the candidates. */
  const expectIndex = async (filter: unknown, index: string, maxRows: number, knowledge: Knowledge) => {
    for (const direction of ['asc', 'desc'] as const) {
      const plan = await planFor({ filter, position: { direction } }, knowledge)
      const used = plan.steps.filter(({ loops }) => loops > 0).map(step => step.index ?? '')
      expect(
        used.some(name => name.includes(index)),
        plan.text,
      ).toBe(true)
      expectNoScan(plan)
      // The plan does not walk the stack in order.
      expectLookUps(plan)
      expect(plan.rows, plan.text).toBeLessThanOrEqual(maxRows)
    }
  }

  // kith keeps the statistics of the tables. Without those of the entities, PostgreSQL holds all indexes that begin with an organization for
  // equally good.
  describe.each<[string, Knowledge]>([
    ['all tables', {}],
    ['the entities', { unknownTables: ['links', 'terms'] }],
  ])('with statistics of %s, a filter by an identifier', (_, knowledge) => {
    it.each<[string, unknown, string]>([
      ['an external identifier', { external_id: 'p77' }, 'external_id_stack_id_key'],
      ['several external identifiers', { external_id: { $in: ['p77', 'p78'] } }, 'external_id_stack_id_key'],
      ['a range of external identifiers', { external_id: { $gte: 'p777', $lt: 'p7771' } }, 'external_id_stack_id_key'],
      ['an internal identifier', { id: personId(77) }, 'entities_pkey'],
      ['a relationship by name', { 'attribute_values.bought': 'o77' }, 'links_by_target'],
      ['a relationship', bought({ external_id: { $in: ['o77', 'o78'] } }), 'links_by_target'],
      ['two relationships in a row', bought(ofProduct({ external_id: 'product 7' })), 'links_by_target'],
      [
        'an $or of a relationship and others',
        { $or: [{ email: 'p77@example.org' }, { 'attribute_values.city': 'city 77' }, bought({ external_id: 'o77' })] },
        'terms_pkey',
      ],
      [
        'an $or of equalities',
        { $or: [{ email: 'p77@example.org' }, { 'attribute_values.city': 'city 77' }, { external_id: 'p78' }] },
        'external_id_stack_id_key',
      ],
    ])('uses only index scans for %s', (_, filter, index) => expectIndex(filter, index, 500, knowledge))
  })

  describe.each(states)('%s statistics, a filter with an index', (_, knowledge) => {
    it.each<[string, unknown, string, number?]>([
      ['an indexed text', { 'attribute_values.city': 'city 77' }, 'terms_pkey'],
      ['several indexed texts', { 'attribute_values.city': { $in: ['city 77', 'city 78'] } }, 'terms_pkey'],
      ['a range of indexed numbers', { 'attribute_values.score': { $gte: 500, $lt: 600 } }, 'terms_pkey'],
      ['an open range of indexed numbers', { 'attribute_values.score': { $gt: people - 20 } }, 'terms_pkey'],
      ['an email', { email: 'p77@example.org' }, 'entities_email_key'],
      ['several emails', { email: { $in: ['p77@example.org', 'P78@example.org'] } }, 'entities_email_key'],
      [
        'three relationships in a row',
        bought(ofProduct({ 'attribute_values.maker': { $some: { email: 'p7@example.org' } } })),
        'entities_email_key',
      ],
      [
        'an indexed condition combined with one without an index',
        { email: 'p77@example.org', 'attribute_values.note': 'note 77' },
        'entities_email_key',
      ],
      [
        'two indexed conditions of which one has many matches',
        { ...level, 'attribute_values.city': 'city 77' },
        'terms_pkey',
        maxFewCandidates + 1,
      ],
    ])('uses only index scans for %s', (_, filter, index, maxRows = 500) =>
      expectIndex(filter, index, maxRows, knowledge),
    )

    it('reads the first matches of an equality alone, wherever the page lies', async () => {
      for (const direction of ['asc', 'desc'] as const)
        for (const after_id of [undefined, personId(people / 2)]) {
          const plan = await planFor({ filter: level, position: { direction, after_id } }, knowledge)
          expect(rowsFrom(plan, 'terms'), plan.text).toBe(ofPage)
          expect(rowsFrom(plan, 'entities', 'e'), plan.text).toBe(ofPage)
          expectNoScan(plan)
        }
    })

    it('counts the candidates of two equalities with many matches only as far as it has to', async () => {
      const plan = await planFor({ filter: { ...level, ...tier } }, knowledge)
      expect(rowsFrom(plan, 'terms'), plan.text).toBeLessThanOrEqual(2 * (maxFewCandidates + 1) + 4 * ofPage)
      expect(rowsFrom(plan, 'entities', 'e'), plan.text).toBeLessThanOrEqual(4 * ofPage)
      expectNoScan(plan)
    })

    it('with many candidates walks the first entities of the stack, and sorts the candidates after them', async () => {
      const wide = { 'attribute_values.score': { $gte: 0 } }
      const common = await planFor({ filter: wide }, knowledge)
      expect(rowsFrom(common, 'entities', 'e'), common.text).toBeLessThanOrEqual(4 * ofPage)
      const sent = await sentFor({ filter: { ...wide, 'attribute_values.note': 'note 77' } })
      const [walk, next, ...others] = await plansOf(sent, knowledge)
      expect(walk!.text).toMatch(/Index (Only )?Scan Backward using entities_pkey on entities e /)
      // The entities are found in order, and then checked.
      expect(rowsFrom(walk!, 'entities', 'e'), walk!.text).toBe(2 * 2_000)
      expect(rowsFrom(next!, 'terms'), next!.text).toBeLessThanOrEqual(people)
      expect(others.length).toBeGreaterThan(0)
      for (const plan of [next!, ...others]) expectLookUps(plan)
      for (const plan of [walk!, next!, ...others]) expectNoScan(plan)
    })
  })

  describe.each(states)('%s statistics, a filter without an index', (_, knowledge) => {
    it.each<[string, unknown]>([
      ['no condition', {}],
      ['a part of a text', contains7],
      ['a state', { state: 'active' }],
      ['a time', { created_at: { $gt: '2020-01-01T00:00:00Z' } }],
      ['an alternative', { $or: [contains7, { 'attribute_values.city': { $contains: '7' } }] }],
      ['a negation', { $not: { 'attribute_values.city': 'city 77' } }],
      ['a consent', { consents: { $some: { channel: 'email', state: true } } }],
      ['a relationship by name', { 'attribute_values.agent': { $exists: true } }],
    ])('walks the stack in order, and stops when the page is full: %s', async (_, filter) => {
      for (const [direction, walk] of [
        ['asc', /Index (Only )?Scan using entities_pkey on entities e /],
        ['desc', /Index (Only )?Scan Backward using entities_pkey on entities e /],
      ] as const)
        for (const after_id of [undefined, personId(people / 2)])
          for (const projection of [undefined, projectionOf(['external_id', 'attribute_values.city'], 0)]) {
            const plan = await planFor({ filter, position: { direction, after_id, projection } }, knowledge)
            expect(plan.text).toMatch(walk)
            expect(plan.text).not.toMatch(scanOfStack)
            expect(rowsFrom(plan, 'entities', 'e'), plan.text).toBeLessThanOrEqual(10 * ofPage)
          }
    })
  })

  describe.each(states)('%s statistics, a count', (_, knowledge) => {
    it('of one equality reads its index alone', async () => {
      const plan = await planFor({ filter: level, isCounted: true }, knowledge)
      // The page has its entities, too.
      expect(rowsFrom(plan, 'entities', 'e'), plan.text).toBe(ofPage)
      expect(rowsFrom(plan, 'terms'), plan.text).toBeGreaterThan(maxFewCandidates + ofPage)
      expect(rowsFrom(plan, 'terms'), plan.text).toBeLessThanOrEqual(ofLevel + ofPage)
      expect(plan.text).toMatch(/Index Only Scan using terms_pkey on terms/)
      expectNoScan(plan)
    })

    it('of two equalities with many matches each intersects their indexes', async () => {
      const plan = await planFor({ filter: { ...level, ...tier }, isCounted: true }, knowledge)
      expect(
        plan.steps.some(({ type, loops }) => type === 'SetOp' && loops > 0),
        plan.text,
      ).toBe(true)
      expect(rowsFrom(plan, 'entities', 'e'), plan.text).toBeLessThanOrEqual(4 * ofPage)
      expect(rowsFrom(plan, 'terms'), plan.text).toBeLessThanOrEqual(
        ofLevel + ofTier + 4 * (maxFewCandidates + 1) + 4 * ofPage,
      )
      expectNoScan(plan)
    })

    it('of two equalities looks up the few matches of one', async () => {
      const filter = { ...level, 'attribute_values.city': 'city 77' }
      const plan = await planFor({ filter, isCounted: true }, knowledge)
      expect(
        plan.steps.some(({ type, loops }) => type === 'SetOp' && loops > 0),
        plan.text,
      ).toBe(false)
      expect(rowsFrom(plan, 'entities', 'e'), plan.text).toBeLessThanOrEqual(4 * 10)
      expectLookUps(plan)
      expectNoScan(plan)
    })

    it('of a filter with an index reads its candidates, and the stack without one', async () => {
      const exists = { 'attribute_values.note': { $exists: true } }
      const indexed = await planFor(
        { filter: { 'attribute_values.city': 'city 77', ...exists }, isCounted: true },
        knowledge,
      )
      expect([...indexed.indexes].join()).toMatch(/terms_pkey/)
      expectLookUps(indexed)
      expectNoScan(indexed)
      const all = await planFor({ filter: exists, isCounted: true }, knowledge)
      expect(all.text).not.toMatch(/Seq Scan on entities/)
      expect(rowsFrom(all, 'entities', 'e'), all.text).toBeLessThanOrEqual(people + 4 * ofPage)
    })

    it('of a stack reads an index alone', async () => {
      const plan = await planFor({ isCounted: true }, knowledge)
      expect(plan.text).toMatch(/Index Only Scan using entities/)
      expect(plan.text).not.toMatch(/Seq Scan on entities/)
    })
  })

  it.each<[string, object]>([
    ['some', { $some: { 'attribute_values.note': { $exists: true } } }],
    ['none', { $none: {} }],
    ['a number', { $count: { $gte: 2 } }],
  ])(
    'on linked entities walks the stack first, and then reads the links of the stack once, also without statistics: %s',
    async (_, test) => {
      const filter = { 'incoming.people.referrer': test }
      const sent = await sentFor({ filter }, rows =>
        rows.map(row => ({ ...row, rows: null, found: 0, boundary: personId(people + 1) })),
      )
      expect(sent.map(({ settings }) => settings !== undefined)).toEqual([false, true])
      for (const [, knowledge] of states) {
        const [walk, all] = await plansOf(sent, knowledge)
        expect(walk!.text).toMatch(/Scan Backward using entities_pkey on entities e /)
        expectNoScan(walk!)
        expect(all!.text).toMatch(/Hash/)
        expect(all!.text).not.toMatch(/Seq Scan on entities/)
      }
    },
  )

  it.each<[string, object]>([
    ['some', { $some: { 'attribute_values.note': { $exists: true } } }],
    ['none', { $none: {} }],
    ['a number', { $count: { $gte: 2 } }],
    ['a number that may be 0', { $count: { $lt: 2 } }],
  ])(
    'a count of a filter on linked entities reads the links of a stack once, also without statistics: %s',
    async (_, test) => {
      const sent = await sentFor({ filter: { 'incoming.people.referrer': test }, isCounted: true })
      const counts = sent.filter(({ settings }) => settings)
      expect(counts).toHaveLength(1)
      for (const [, knowledge] of states) {
        const plan = await planOf(service.db, counts[0]!, knowledge)
        expect(plan.text).toMatch(/Hash/)
        for (const { type, loops } of plan.steps) if (type === 'Nested Loop') expect(loops, plan.text).toBe(0)
        expect(rowsFrom(plan, 'links'), plan.text).toBeLessThanOrEqual(6 * people)
      }
    },
  )

  describe('a sorted page', () => {
    const fields = [
      ['email', 'asc'],
      ['email', 'desc'],
      ['last_name', 'asc'],
      ['last_name', 'desc'],
      ['attribute_values.score', 'asc'],
      ['attribute_values.score', 'desc'],
      ['updated_at', 'desc'],
    ] as const

    /** The statements of the pages before the index was filled, by field. */
    const unfilled = new Map<string, Sent[]>()
    beforeAll(async () => {
      for (const field of new Set(fields.map(([field]) => field))) {
        // The first request creates the index, and begins again.
        await sentFor({ sort: { field } })
        unfilled.set(field, await sentFor({ sort: { field } }))
      }
      await backfillIndexes(service.db)
      world.definitions = await reloadDefinitions(contextOf(service.db, world.shop.id))
    }, 120_000)

    const expectWalk = (plan: Plan, maxTerms: number) => {
      expect(plan.text).not.toMatch(scanOfStack)
      expect(plan.text).toMatch(/Index Cond: .*ROW\(value, entity_id\)|Index Cond: .*value = /)
      expect(rowsFrom(plan, 'terms'), plan.text).toBeLessThanOrEqual(maxTerms)
      expectLookUps(plan)
    }

    const placesOf = async (index_id: number): Promise<Partial<Position>[]> => {
      const at = (offset: number) =>
        service.sql<{ after_term: string; after_id: string }>(
          `select value as after_term, entity_id as after_id from terms where organization_id = $1 and index_id = $2
           order by value, entity_id offset $3 limit 1`,
          [world.shop.id, index_id, offset],
        )
      return [{}, ...(await Promise.all([100, people / 2, people - 60, people - 10].map(at))).flat()]
    }

    it.each(fields)(
      'by %s %s reads a page of the index wherever the page lies, also without statistics of the index',
      async (field, direction) => {
        const { id } = world.definitions.sort_indexes.get(0)!.get(field)!
        for (const position of await placesOf(id))
          for (const unknownTables of [[], ['terms'], ['entities', 'links', 'terms']])
            expectWalk(await planFor({ sort: { field, direction }, position }, { unknownTables }), ofPage)
      },
    )

    it('whose index is not filled reads the stack in portions', async () => {
      const [stack] = await service.sql<{ count: number }>(
        'select count(*)::integer from entities where organization_id = $1 and stack_id = 0',
        [world.shop.id],
      )
      for (const sent of unfilled.values())
        for (const [, knowledge] of states) {
          const plans = await plansOf(sent, knowledge)
          // The last statement shows the page.
          expect(plans).toHaveLength(Math.floor(stack!.count / 5_000) + 2)
          for (const plan of plans.slice(0, -2)) {
            expect(rowsFrom(plan, 'entities', 'e'), plan.text).toBe(2 * 5_000)
            expect(plan.text).not.toMatch(scanOfStack)
            expect(plan.text).toMatch(/Index (Only )?Scan using entities_pkey on entities e /)
          }
          expect(rowsFrom(plans.at(-1)!, 'entities', 'e')).toBeLessThanOrEqual(2 * ofPage)
        }
    })

    it('of a filter without an index checks only the entities of its round', async () => {
      const filter = { 'attribute_values.note': 'none has it' }
      for (const direction of ['asc', 'desc'] as const) {
        const sent = await sentFor({ filter, sort: { field: 'email', direction } })
        for (const [, knowledge] of states) {
          const plans = await plansOf(sent, knowledge)
          for (const [round, plan] of plans.entries()) expectWalk(plan, 500 * 8 ** round)
        }
      }
    })

    it('of a common filter without an index stops when the page is full', async () => {
      for (const direction of ['asc', 'desc'] as const)
        for (const [, knowledge] of states)
          expectWalk(await planFor({ filter: contains7, sort: { field: 'email', direction } }, knowledge), 500)
    })

    it('of a filter with few candidates looks up each of them', async () => {
      const filter = { 'attribute_values.city': 'city 77', ...contains7 }
      const sent = await sentFor({ filter, sort: { field: 'email' } })
      for (const [, knowledge] of states) {
        const [candidates, page, ...others] = await plansOf(sent, knowledge)
        expect(others).toEqual([])
        expect(candidates!.text).toMatch(/using terms_pkey on terms x/)
        for (const plan of [candidates!, page!]) {
          expectLookUps(plan)
          expectNoScan(plan)
          expect(plan.rows, plan.text).toBeLessThanOrEqual(200)
        }
      }
    })

    it('of a filter with many candidates counts them, and walks the index', async () => {
      for (const [, knowledge] of states) {
        const sent = await sentFor({ filter: level, sort: { field: 'email' } })
        const [count, page] = await plansOf(sent, knowledge)
        expect(rowsFrom(count!, 'terms'), count!.text).toBe(maxFewCandidates + 1)
        expect(rowsFrom(count!, 'entities', 'e'), count!.text).toBe(0)
        expectWalk(page!, 500)
      }
    })
  })
}
