import { describe, expect, it } from 'vitest'
import type { Statement } from '../../src/db/db.ts'
import { readIncludedSql } from '../../src/entities/read/included-sql.ts'
import { readLabelsSql } from '../../src/entities/read/labels-sql.ts'
import { countRelatedSql, readProjectedRelatedSql, readRelatedSql } from '../../src/entities/read/pagination-sql.ts'
import { projectionOf, projectionValues } from '../../src/entities/read/projection.ts'
import {
  countEntitiesSql,
  readPage,
  readProjectedPage,
  readProjectedPortionSql,
} from '../../src/entities/read/read-sql.ts'
import { parseFilter } from '../../src/filters/parse.ts'
import { countStatement } from '../../src/filters/select.ts'
import { expectReads, planOf } from './explain.ts'
import { people, personId, personIds, referrers, type World } from './world.ts'

const fields = ['external_id', 'attribute_values.city', 'attribute_values.referrer']
const projected = (names = fields) => projectionValues(projectionOf(names, 0))
const limit = 1_048_576
/** A page of 50 reads 51 people, and each has up to four links. */
const maxRows = 4 * 51

/** Pages of people, what they include, and counts. */
export function testPages(world: World): void {
  const expectRows = (sent: Statement, values: unknown[], max: number) =>
    expectReads(world.service.db, sent, [world.shop.id, ...values], max)
  const plan = ({ text }: Statement, values: unknown[]) =>
    planOf(world.service.db, { text, values: [world.shop.id, ...values] })

  describe('a page of 50 whole people', () => {
    it.each(['asc', 'desc'] as const)('reads as many rows and their links, wherever it lies: %s', async direction => {
      await expectRows(readPage[direction], [0, personId(people / 2), 51, limit], maxRows)
    })
  })

  describe('a page of 50 with fields', () => {
    it.each(['asc', 'desc'] as const)('reads as many rows, wherever it lies: %s', async direction => {
      const page = [0, personId(people / 2), 51, limit, ...projected()]
      await expectRows(readProjectedPage[direction], page, maxRows)
      const related = [
        limit,
        0,
        personId(people / 2),
        51,
        personId(7),
        [world.attributes.referrer],
        [world.attributes.referrer],
      ]
      await expectRows(readRelatedSql[direction], related, 2 * maxRows)
      await expectRows(readProjectedRelatedSql[direction], [...related, ...projected()], 2 * maxRows)
    })

    it('reads links only if a relationship is named, and no other attribute needs them', async () => {
      const links = /\bon links\b[^\n]*\n?[^\n]*/g
      const page = (names: string[]) => plan(readProjectedPage.asc, [0, personId(1), 51, limit, ...projected(names)])
      for (const names of [
        ['external_id', 'email'],
        ['attribute_values.city', 'version'],
      ]) {
        const scans = (await page(names)).match(links)!
        expect(scans.length).toBeGreaterThan(0)
        for (const scan of scans) expect(scan).toContain('never executed')
      }
      expect((await page(fields)).match(links)!.join()).toMatch(/rows=1(\.00)? loops=51/)
    })

    it('reads a portion of it by the ids', async () => {
      await expectRows(readProjectedPortionSql, [0, personIds(1, 50), limit, ...projected()], maxRows)
    })
  })

  it('the entities that a page includes are read by the links of the page, each once', async () => {
    const values = [personIds(1_001, 50), [world.attributes.referrer], 10_000, 8 * limit, false]
    await expectRows(readIncludedSql, values, maxRows)
    const shared = [
      personIds(referrers, 500).filter((_, index) => index % 5 === 0),
      [world.attributes.referrer],
      10_000,
      8 * limit,
      false,
    ]
    await expectRows(readIncludedSql, shared, 2 * maxRows)
  })

  it('the labels of a page are read by its links and those of the targets, each target once', async () => {
    const { agent, bought, product } = world.attributes
    const named = [[product], [1, 2], ['number', 'name'], 10_000, 200]
    // Each person has an agent, every second one an order, and each order a product.
    await expectRows(readLabelsSql, [0, personIds(1_001, 50), [agent, bought], ...named], 6 * 50)
    await expectRows(readLabelsSql, [0, personIds(1_001, 50), [], [], [], [], 10_000, 200], 2 * 50)
  })

  describe('a count', () => {
    it('of a stack reads an index only', async () => {
      const text = await plan(countEntitiesSql, [0])
      expect(text).toMatch(/Index Only Scan using entities/)
      expect(text).not.toMatch(/Seq Scan on entities/)
    })

    it('of related entities reads their links', async () => {
      await expectRows(
        countRelatedSql,
        [0, personId(7), [world.attributes.referrer], [world.attributes.referrer]],
        (2 * people) / referrers + 10,
      )
    })

    it('of a filter with an index reads its candidates, and the stack without one', async () => {
      const { service, definitions } = world
      const counted = (filter: unknown) =>
        planOf(service.db, countStatement(parseFilter(filter, definitions, 0).condition, definitions, 0))
      const indexed = await counted({ email: { $gte: 'p77', $lt: 'p771' }, 'attribute_values.note': { $exists: true } })
      expect(indexed).toMatch(/entities_email/)
      expect(indexed).toMatch(/Scan using entities_\w+ on entities e .*\n\s*Index Cond: .*\(id = \w+\.id\)/)
      expect(indexed).not.toMatch(/Seq Scan on entities/)
      expect(await counted({ 'attribute_values.note': { $exists: true } })).toMatch(
        /(Scan using entities_\w+|Bitmap Heap Scan) on entities e/,
      )
    })

    it.each<[string, object]>([
      ['some', { $some: { 'attribute_values.note': { $exists: true } } }],
      ['none', { $none: {} }],
      ['a number', { $count: { $gte: 2 } }],
      ['a number that may be 0', { $count: { $lt: 2 } }],
    ])(
      'of a filter on linked entities reads the links of a stack once, also without statistics: %s',
      async (_, test) => {
        const { service, definitions } = world
        const { condition } = parseFilter({ 'incoming.people.referrer': test }, definitions, 0)
        for (const unknownTables of [[], ['entities', 'links']]) {
          const plan = await planOf(service.db, countStatement(condition, definitions, 0), { unknownTables })
          expect(plan).toMatch(/Hash/)
          expect(plan).not.toMatch(/(Nested Loop|SubPlan).*actual/)
        }
      },
    )
  })
}
