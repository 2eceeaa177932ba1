import { describe, expect, it } from 'vitest'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import { prepareSortIndex, readySortIndex } from '../../src/entities/indexes/sort-index.ts'
import { startOf } from '../../src/entities/read/pagination.ts'
import { parseFilter } from '../../src/filters/parse.ts'
import { matchingStatements, type SortKey, sortedStatements } from '../../src/filters/select.ts'
import { parseSort } from '../../src/filters/sort.ts'
import { reloadDefinitions } from '../../src/organizations/definitions.ts'
import { planOf } from './explain.ts'
import { people, personId, type World } from './world.ts'

const bought = (filter: unknown) => ({ 'attribute_values.bought': { $some: filter } })
const ofProduct = (filter: unknown) => ({ 'attribute_values.product': { $some: filter } })

/** Filters, and sorted pages of them. */
export function testFilters(world: World): void {
  const { service } = world

  async function planOfFilter(filter: unknown, direction: 'asc' | 'desc' = 'desc') {
    const position = { direction, size: 50 }
    const { definitions } = world
    const statements = matchingStatements(parseFilter(filter, definitions, 0).condition, definitions, 0, position)
    return planOf(service.db, statements.rows(startOf(position), 51, 0))
  }

  describe('a filter with an index', () => {
    it.each<[string, unknown, RegExp]>([
      ['an indexed text', { 'attribute_values.city': 'city 77' }, /terms_pkey/],
      ['several indexed texts', { 'attribute_values.city': { $in: ['city 77', 'city 78'] } }, /terms_pkey/],
      ['a range of indexed numbers', { 'attribute_values.score': { $gte: 500, $lt: 600 } }, /terms_pkey/],
      ['an open range of indexed numbers', { 'attribute_values.score': { $gt: people - 20 } }, /terms_pkey/],
      ['an email', { email: 'p77@example.org' }, /entities_email/],
      ['a range of emails', { email: { $gte: 'p77', $lt: 'p771' } }, /entities_email/],
      ['an external identifier', { external_id: 'p77' }, /external_id_stack_id_key/],
      ['a range of external identifiers', { external_id: { $gte: 'p777', $lt: 'p7771' } }, /external_id_stack_id_key/],
      ['an internal identifier', { id: personId(77) }, /entities_pkey/],
      ['a relationship by name', { 'attribute_values.bought': 'o77' }, /links_by_target/],
      ['a relationship', bought({ external_id: { $in: ['o77', 'o78'] } }), /links_by_target/],
      ['two relationships in a row', bought(ofProduct({ external_id: 'product 7' })), /links_by_target/],
      [
        'three relationships in a row',
        bought(ofProduct({ 'attribute_values.maker': { $some: { email: 'p7@example.org' } } })),
        /entities_email/,
      ],
      [
        'an $or of these',
        { $or: [{ email: 'p77@example.org' }, { 'attribute_values.city': 'city 77' }, bought({ external_id: 'o77' })] },
        /terms_pkey/,
      ],
      [
        'an indexed condition combined with one without an index',
        { email: 'p77@example.org', 'attribute_values.note': 'note 77' },
        /entities_email/,
      ],
    ])('uses only index scans for %s', async (_, filter, index) => {
      for (const direction of ['asc', 'desc'] as const) {
        const plan = await planOfFilter(filter, direction)
        expect(plan).toMatch(index)
        expect(plan).not.toMatch(/Seq Scan on (entities|links|terms)/)
        // The index of the condition finds the candidates first. The plan does not scan the stack in order.
        expect(plan).toMatch(/Index Cond: .*\(id = candidate\.id\)/)
      }
    })
  })

  it('scans the stack in order for a filter without an index, and stops when the page is full', async () => {
    const plan = await planOfFilter({ 'attribute_values.note': { $contains: '7' } })
    expect(plan).toMatch(/Index Scan Backward using entities_pkey on entities e /)
    expect(plan).not.toMatch(/Seq Scan on (entities|links|terms)/)
  })

  it.each<[string, object]>([
    ['some', { $some: { 'attribute_values.note': { $exists: true } } }],
    ['none', { $none: {} }],
    ['a number', { $count: { $gte: 2 } }],
  ])(
    'on linked entities walks the stack first, and then reads the links of the stack once, also without statistics: %s',
    async (_, test) => {
      const { definitions } = world
      const position = { direction: 'desc', size: 50 } as const
      const { condition } = parseFilter({ 'incoming.people.referrer': test }, definitions, 0)
      const statements = matchingStatements(condition, definitions, 0, position)
      for (const unknownTables of [[], ['entities', 'links']]) {
        const walk = await planOf(service.db, statements.rows(startOf(position), 51, 0), { unknownTables })
        expect(walk).toMatch(/Index Scan Backward using entities_pkey on entities e /)
        const all = await planOf(service.db, statements.rows(startOf(position), 51, 1), { unknownTables })
        expect(all).toMatch(/Hash/)
        expect(all).not.toMatch(/Seq Scan on entities/)
      }
    },
  )

  describe('a sorted page', () => {
    async function statementsOf(field: string, direction: 'asc' | 'desc', filter: object = {}) {
      const sort = parseSort({ field, direction }, world.definitions, 0)
      if (!readySortIndex(world.definitions, 0, field)) {
        const preparing = prepareSortIndex(service.db, world.definitions, { stack_id: 0, field, type: sort.type })
        // On a slow machine it does not suffice.
        await preparing.catch(() => backfillIndexes(service.db))
        world.definitions = await reloadDefinitions(service.db, world.shop.id)
      }
      const { definitions } = world
      const index = readySortIndex(definitions, 0, field)!
      const { condition } = parseFilter(filter, definitions, 0)
      const position = { direction, size: 50 }
      const selection = { condition, definitions, stack_id: 0, sort, index, position }
      return { ...sortedStatements(selection), index }
    }

    /** The rows that the plan reads from `terms`, in all. */
    const termsRead = (plan: string) =>
      [...plan.matchAll(/Index Only Scan.* using terms_pkey on terms t .*actual.* rows=([\d.]+) loops=(\d+)/g)]
        .map(([, rows, loops]) => Number(rows) * Number(loops))
        .reduce((sum, rows) => sum + rows, 0)

    const expectWalk = (plan: string, maxTerms: number) => {
      expect(plan).not.toMatch(/Seq Scan on|Bitmap/)
      expect(plan).toMatch(/Index Cond: .*ROW\(value, entity_id\)|Index Cond: .*value = 'z'/)
      expect(termsRead(plan)).toBeLessThanOrEqual(maxTerms)
      expect(plan).toMatch(/Index Scan using entities_pkey on entities e /)
    }

    const placesOf = async (index_id: number): Promise<(SortKey | undefined)[]> => {
      const at = (offset: number) =>
        service.sql<SortKey>(
          `select value as term, entity_id as id from terms where organization_id = $1 and index_id = $2
           order by value, entity_id offset $3 limit 1`,
          [world.shop.id, index_id, offset],
        )
      return [undefined, ...(await Promise.all([100, people / 2, people - 60, people - 10].map(at))).flat()]
    }

    it.each([
      ['email', 'asc'],
      ['email', 'desc'],
      ['last_name', 'asc'],
      ['last_name', 'desc'],
      ['attribute_values.score', 'asc'],
      ['attribute_values.score', 'desc'],
      ['updated_at', 'desc'],
    ] as const)(
      'by %s %s reads a page of the index wherever the page lies, also without statistics of the index',
      async (field, direction) => {
        const { walk, index } = await statementsOf(field, direction)
        for (const after of await placesOf(index.id))
          for (const unknownTables of [[], ['terms']])
            expectWalk(await planOf(service.db, walk(after, 51, 0), { unknownTables }), 51)
      },
    )

    it('of a filter without an index checks only the entities of its round', async () => {
      for (const direction of ['asc', 'desc'] as const) {
        const { walk } = await statementsOf('email', direction, { 'attribute_values.note': { $contains: '7' } })
        for (const [round, maxTerms] of [
          [0, 102],
          [1, 816],
        ] as const)
          expectWalk(await planOf(service.db, walk(undefined, 51, round)), maxTerms)
      }
    })

    it('of a filter with few candidates looks up each of them', async () => {
      const filter = { 'attribute_values.city': 'city 77', 'attribute_values.note': { $contains: '7' } }
      const { candidates, rows } = await statementsOf('email', 'asc', filter)
      const plan = await planOf(service.db, candidates[0]!)
      expect(plan).toMatch(/using terms_pkey on terms x/)
      expect(plan).toMatch(/Index Cond: .*\(id = c\.id\)/)
      expect(plan).not.toMatch(/Seq Scan on (entities|links|terms)/)
      const page = await planOf(service.db, rows([personId(77)]))
      expect(page).toMatch(/Index Scan using entities_pkey on entities e /)
    })
  })
}
