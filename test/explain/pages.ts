import { describe, expect, it } from 'vitest'
import type { Context } from '../../src/db/context.ts'
import type { Statement } from '../../src/db/db.ts'
import { readPortion } from '../../src/entities/read/entity-reader.ts'
import { projectionOf } from '../../src/entities/read/projection.ts'
import { readIncludedSql, readLabelsSql } from '../../src/entities/read/read-sql.ts'
import { readFilteredPage } from '../../src/queries/pages/page.ts'
import { readRelatedPage } from '../../src/queries/pages/related-page.ts'
import { expectReads, type Plan, planOf } from './explain.ts'
import { statementsOf } from './sent.ts'
import { people, personId, personIds, referrers, type World } from './world.ts'

const fields = ['external_id', 'attribute_values.city', 'attribute_values.referrer']
const limit = 1_048_576
/** A page of 50 reads 51 people, and each has up to four links. */
const maxRows = 4 * 51

/** Pages of people, what they include, and counts of related ones. */
export function testPages(world: World): void {
  const expectRows = (sent: Statement, values: unknown[], max: number) =>
    expectReads(world.service.db, sent, [world.shop.id, ...values], max)

  /** The plan of the only statement of a shape that a read sends. */
  async function planFor(read: (context: Context) => Promise<unknown>) {
    const sent = await statementsOf(world.service.db, world.shop.id, read)
    expect(sent).toHaveLength(1)
    return planOf(world.service.db, sent[0]!)
  }

  const expectPlan = ({ scanned, rows, text }: Plan, max: number) => {
    expect(scanned, text).toEqual([])
    expect(rows, text).toBeLessThanOrEqual(max)
  }

  const positionOf = (direction: 'asc' | 'desc', after_id: string, names?: string[]) => {
    const projection = names && projectionOf(names, 0)
    return { direction, size: 50, maxRowBytes: limit, after_id, projection }
  }

  /** The plan of a page of all people. */
  const planOfPage = (...place: Parameters<typeof positionOf>) => {
    const request = { stack_id: 0, filter: {}, position: positionOf(...place) }
    return planFor(context => readFilteredPage(context, request))
  }

  /** The plan of a page of the people that are linked with one by the attribute `referrer`, and of their number. */
  const planOfRelated = (isCounted: boolean, ...place: Parameters<typeof positionOf>) => {
    const { definitions, attributes } = world
    const [outgoing, incoming] = [[attributes.referrer!], [attributes.referrer!]]
    const query = { id: personId(7), stack_id: 0, outgoing, incoming }
    return planFor(context => readRelatedPage(context, definitions, query, { ...positionOf(...place), isCounted }))
  }

  describe('a page of 50 whole people', () => {
    it.each(['asc', 'desc'] as const)('reads as many rows and their links, wherever it lies: %s', async direction => {
      expectPlan(await planOfPage(direction, personId(people / 2)), maxRows)
      expectPlan(await planOfRelated(false, direction, personId(people / 2)), 2 * maxRows)
    })
  })

  describe('a page of 50 with fields', () => {
    it.each(['asc', 'desc'] as const)('reads as many rows, wherever it lies: %s', async direction => {
      expectPlan(await planOfPage(direction, personId(people / 2), fields), maxRows)
      expectPlan(await planOfRelated(false, direction, personId(people / 2), fields), 2 * maxRows)
    })

    it('reads links only if a relationship is named, and no other attribute needs them', async () => {
      const linksOf = async (names: string[]) => {
        const { steps } = await planOfPage('asc', personId(1), names)
        return steps.filter(({ table }) => table === 'links')
      }
      for (const names of [
        ['external_id', 'email'],
        ['attribute_values.city', 'version'],
      ])
        for (const { loops } of await linksOf(names)) expect(loops).toBe(0)
      expect((await linksOf(fields)).map(({ rows, loops }) => [rows, loops])).toContainEqual([51, 51])
    })

    it('reads a portion of it by the ids', async () => {
      const portion = { ids: personIds(1, 50), minBytes: limit, projection: projectionOf(fields, 0) }
      expectPlan(await planFor(context => readPortion(context, 0, portion)), maxRows)
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

  it('a count of related entities reads their links', async () => {
    expectPlan(await planOfRelated(true, 'asc', personId(people / 2)), (2 * people) / referrers + 10)
  })
}
