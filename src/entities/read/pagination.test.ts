import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { readPageIds } from '../../../test/support/filtered-pages.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { useService } from '../../../test/support/service.ts'
import { createShop, useSharedShop } from '../../../test/support/shop.ts'
import { contextOf } from '../../db/context.ts'
import { reloadDefinitions } from '../../organizations/definitions.ts'
import { readFilteredPage } from '../../queries/pages/page.ts'
import { readRelatedPage } from '../../queries/pages/related-page.ts'
import { uuidOfRecord } from '../../values/formats.ts'
import { idsOfPage, printPage } from './entity-json.ts'
import type { Position } from './pagination.ts'

const service = useService()
const organization = useSharedShop(service, 'orders', 'city')
beforeAll(async () => {
  const operations = Array.from({ length: 60 }, (_, index) => ({
    op: 'create',
    body: { external_id: `p${index}`, attribute_values: { city: index % 2 ? 'Rome' : 'Oslo' } },
  }))
  await organization.send('POST', '/v1/people/batch', { operations })
})

type Read = (position: Position) => Promise<{ ids: string[]; has_more: boolean }>

async function printedPage(stack_id: number, position: Position) {
  const { rows, definitions } = await readFilteredPage(contextOf(service.db, organization.id), {
    stack_id,
    filter: {},
    position,
  })
  return printPage(rows, position.size, { definitions, stack_id, maxBytes: Number.POSITIVE_INFINITY })!
}

const readPeople: Read = async position => {
  const { items, has_more } = await printedPage(0, position)
  return { ids: JSON.parse(`[${items}]`).map(({ id }: { id: string }) => id), has_more }
}
const readRomans: Read = position =>
  readPageIds(service.db, organization.id, { stack_id: 0, filter: { 'attribute_values.city': 'Rome' }, position })

/** Reads all pages in order. `betweenPages` runs before each page but the first. */
async function readAll(read: Read, direction: 'asc' | 'desc', size: number, betweenPages?: () => Promise<unknown>) {
  const ids: string[] = []
  for (;;) {
    const { ids: next, has_more } = await read({ direction, size, after_id: ids.at(-1) })
    ids.push(...next)
    if (has_more) expect(next).toHaveLength(size)
    else return ids
    await betweenPages?.()
  }
}

let written = 0
/** Makes changes that pages must not depend on: creates and deletes other people, and updates the listed ones. */
async function write() {
  written += 1
  const { send } = organization
  await Promise.all([
    send('POST', '/v1/people', { external_id: `new${written}`, attribute_values: { city: 'Rome' } }),
    send('PATCH', `/v1/people/p${written % 60}`, { first_name: `name ${written}` }),
    written > 1 && send('DELETE', `/v1/people/new${written - 1}`),
  ])
}

const pages = fc.record({
  direction: fc.constantFrom('asc' as const, 'desc' as const),
  size: fc.integer({ min: 1, max: 25 }),
})

describe.each([
  ['a list', readPeople, () => true],
  ['a filter', readRomans, (index: number) => index % 2 === 1],
] as const)('the pages of %s', (_, read, belongs) => {
  it('contain every entity once and in order, for any size and direction, during writes', async () => {
    const permanent = await service.sql<{ id: string; external_id: string }>(
      "select id, external_id from entities where organization_id = $1 and external_id like 'p%' order by id",
      [organization.id],
    )
    const expected = permanent.filter(({ external_id }) => belongs(Number(external_id.slice(1)))).map(({ id }) => id)
    const known = new Set(expected)
    await fc.assert(
      fc.asyncProperty(pages, async ({ direction, size }) => {
        const ids = await readAll(read, direction, size, write)
        expect(ids.filter(id => known.has(id))).toEqual(direction === 'asc' ? expected : expected.toReversed())
        expect(new Set(ids).size).toBe(ids.length)
        const sorted = ids.toSorted()
        expect(ids).toEqual(direction === 'asc' ? sorted : sorted.reverse())
      }),
      someRuns(12),
    )
  })

  it('may start after an identifier that does not exist', async () => {
    const ids = await readAll(read, 'asc', 500)
    const after_id = ids[4]!.replace(/.$/, digit => (digit === 'f' ? 'e' : 'f'))
    const behind = await read({ direction: 'asc', size: 500, after_id })
    expect(behind.ids).toEqual(ids.filter(id => id > after_id))
  })

  it('have has_more only if more entities follow', async () => {
    const { length } = await readAll(read, 'desc', 500)
    expect(await read({ direction: 'desc', size: length })).toMatchObject({ has_more: false })
    expect(await read({ direction: 'desc', size: length - 1 })).toMatchObject({ has_more: true })
  })
})

it('lists records in order of record_id, which is the cursor', async () => {
  const recordIds: string[] = []
  for (let index = 0; index < 7; index += 1)
    recordIds.push((await organization.send('POST', '/v1/stacks/orders', {})).body.data.record_id)
  const after_id = uuidOfRecord(recordIds.toSorted()[2]!)
  const { items } = await printedPage(1, { direction: 'asc', size: 500, after_id })
  const listed: { record_id: string }[] = JSON.parse(`[${items}]`)
  expect(listed.map(({ record_id }) => record_id)).toEqual(recordIds.toSorted().slice(3))
})

it('returns each related entity once, in both directions, without deleted ones', async () => {
  const { send, id: organization_id } = await createShop(service, 'friends', 'referrer')
  const [friends, referrer] = [1, 2]
  const definitions = await reloadDefinitions(contextOf(service.db, organization_id))
  const hub = { friends: ['a', 'b', 'c', 'gone', 'hub'], referrer: 'a' }
  const { id } = (await send('POST', '/v1/people', { external_id: 'hub', attribute_values: hub })).body.data
  for (const name of ['a', 'x', 'y'])
    await send('POST', '/v1/people', { external_id: name, attribute_values: { referrer: 'hub', friends: ['hub'] } })
  await send('DELETE', '/v1/people/gone')
  const relatedNames = async (outgoing: number[], incoming: number[], direction: 'asc' | 'desc', size: number) => {
    const read: Read = async position => {
      const source = { id, stack_id: 0, outgoing, incoming }
      const { rows } = await readRelatedPage(contextOf(service.db, organization.id), definitions, source, position)
      const ids = idsOfPage(rows, position.size + 1)
      return { ids: ids.slice(0, position.size), has_more: ids.length > position.size }
    }
    const ids = await readAll(read, direction, size)
    const rows = await service.sql<{ id: string; external_id: string }>(
      'select id, external_id from entities where organization_id = $1',
      [organization_id],
    )
    return ids.map(one => rows.find(row => row.id === one)!.external_id)
  }
  expect((await relatedNames([friends, referrer], [], 'asc', 2)).sort()).toEqual(['a', 'b', 'c', 'hub'])
  expect((await relatedNames([], [friends, referrer], 'asc', 1)).sort()).toEqual(['a', 'hub', 'x', 'y'])
  expect((await relatedNames([referrer], [], 'desc', 1)).sort()).toEqual(['a'])
  const both = await relatedNames([friends, referrer], [friends, referrer], 'asc', 3)
  expect(both.toSorted()).toEqual(['a', 'b', 'c', 'hub', 'x', 'y'])
  expect(await relatedNames([friends, referrer], [friends, referrer], 'desc', 2)).toEqual(both.toReversed())
})
