import { ask, type BenchRequest, importLines } from '../requests.ts'
import type { Side } from '../side.ts'
import { type GrowthRow, repeat } from './row.ts'

const linesPerImport = 20_000
const rareEvery = 1_000

/**
 * Declares orders, and imports so many of them for the first people. Every thousandth of a person's orders is rare, by an attribute with an
 * index and by one without.
 */
async function addOrders(side: Side, counts: readonly number[]) {
  const declare = (kind: string, body: object) => ask(side, { method: 'POST', path: `/v1/schema/${kind}`, body })
  await declare('stacks', { key: 'orders', kind: 'event' })
  await declare('attributes', { owner: 'orders', key: 'buyer', type: 'person' })
  await declare('attributes', { owner: 'orders', key: 'note', type: 'text' })
  await declare('attributes', { owner: 'orders', key: 'state', type: 'text', indexed: true })
  for (const [index, count] of counts.entries())
    for (let first = 0; first < count; first += linesPerImport)
      await importLines(side, '/v1/stacks/orders/import', formatOrders(`p${index + 1}`, first, count), 'created')
}

const formatOrders = (buyer: string, first: number, count: number) =>
  Array.from({ length: Math.min(linesPerImport, count - first) }, (_, index) => {
    const n = first + index
    const kind = n % rareEvery === 0 ? 'rare' : 'usual'
    const attribute_values = { buyer, note: kind, state: kind }
    return `${JSON.stringify({ external_id: `${buyer}-${n}`, attribute_values })}\n`
  })

type Named = Pick<GrowthRow, 'name' | 'title' | 'wanted'>

/** The same request about a person with few orders, and about one with many. */
const ofOrders = (row: Named, request: (name: string) => BenchRequest): GrowthRow => ({
  ...row,
  prepare: async side => {
    await addOrders(side, [1_000, 500_000])
    const about = (name: string, size: string) => ({ size, side, work: repeat(5, () => ask(side, request(name))) })
    return { small: about('p1', '1,000 records'), large: about('p2', '500,000 records') }
  },
})

const ofRareOrders = (key: 'note' | 'state', row: Omit<Named, 'wanted'>) =>
  ofOrders({ ...row, wanted: '50 ms' }, name => ({
    method: 'POST',
    path: '/v1/stacks/orders/filter',
    body: { filter: { 'attribute_values.buyer': name, [`attribute_values.${key}`]: 'rare' } },
  }))

const writes = 5_000

/** Requests of 64 connections about random people, and about one. */
const ofOnePerson = (row: Named, request: (name: string, n: number) => BenchRequest): GrowthRow => ({
  ...row,
  prepare: async side => {
    const about = (nextName: () => string, size: string) => ({
      size,
      side,
      work: async () => {
        await side.sendAll(Array.from({ length: writes }, (_, n) => request(nextName(), n)))
        return writes
      },
    })
    return { small: about(() => side.randomPerson(), 'many people'), large: about(() => 'p1', 'one person') }
  },
})

export const linkRows: readonly GrowthRow[] = [
  ofOrders(
    { name: 'related-count', title: 'first page of related records with their number', wanted: '60 ms' },
    name => ({ method: 'POST', path: `/v1/people/${name}/related`, body: { target: 'orders', count: true } }),
  ),
  ofRareOrders('state', {
    name: 'popular-target',
    title: 'page of the records that link to one person, rare by an index',
  }),
  ofRareOrders('note', {
    name: 'popular-target-walked',
    title: 'page of the records that link to one person, rare by no index',
  }),
  ofOnePerson({ name: 'one-person', title: 'PATCH from 64 connections', wanted: '0.2 ms' }, (name, n) => ({
    method: 'PATCH',
    path: `/v1/people/${name}`,
    body: { first_name: `F${n}-${Math.random()}` },
  })),
  ofOnePerson({ name: 'one-person-shown', title: 'upsert from 64 connections', wanted: '0.2 ms' }, (name, n) => ({
    method: 'POST',
    path: '/v1/people/upsert',
    body: { external_id: name, first_name: `F${n}-${Math.random()}` },
  })),
]
