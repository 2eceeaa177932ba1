import { ask, importLines } from '../requests.ts'
import type { Side } from '../side.ts'
import { type GrowthRow, repeat } from './row.ts'

const linesPerImport = 20_000
const rareEvery = 1_000

/** Declares orders, and imports so many of them for the first people. Every thousandth of a person's orders is rare. */
async function addOrders(side: Side, counts: readonly number[]) {
  const declare = (kind: string, body: object) => ask(side, { method: 'POST', path: `/v1/schema/${kind}`, body })
  await declare('stacks', { key: 'orders', kind: 'event' })
  await declare('attributes', { owner: 'orders', key: 'buyer', type: 'person' })
  await declare('attributes', { owner: 'orders', key: 'note', type: 'text' })
  for (const [index, count] of counts.entries())
    for (let first = 0; first < count; first += linesPerImport)
      await importLines(side, '/v1/stacks/orders/import', formatOrders(`p${index + 1}`, first, count), 'created')
}

const formatOrders = (buyer: string, first: number, count: number) =>
  Array.from({ length: Math.min(linesPerImport, count - first) }, (_, index) => {
    const n = first + index
    const attribute_values = { buyer, note: n % rareEvery === 0 ? 'rare' : 'usual' }
    return `${JSON.stringify({ external_id: `${buyer}-${n}`, attribute_values })}\n`
  })

export const linkRows: readonly GrowthRow[] = [
  {
    name: 'related-count',
    title: 'first page of related records with their number',
    wanted: '60 ms',
    prepare: async side => {
      await addOrders(side, [1_000, 500_000])
      const ofPerson = (name: string, size: string) => ({
        size,
        side,
        work: repeat(5, () =>
          ask(side, { method: 'POST', path: `/v1/people/${name}/related`, body: { target: 'orders', count: true } }),
        ),
      })
      return { small: ofPerson('p1', '1,000 records'), large: ofPerson('p2', '500,000 records') }
    },
  },
  {
    name: 'popular-target',
    title: 'page of the records that link to one person and satisfy a rare condition',
    wanted: '50 ms',
    prepare: async side => {
      await addOrders(side, [1_000, 500_000])
      const ofPerson = (name: string, size: string) => ({
        size,
        side,
        work: repeat(5, () =>
          ask(side, {
            method: 'POST',
            path: '/v1/stacks/orders/filter',
            body: { filter: { 'attribute_values.buyer': name, 'attribute_values.note': 'rare' } },
          }),
        ),
      })
      return { small: ofPerson('p1', '1,000 records'), large: ofPerson('p2', '500,000 records') }
    },
  },
  {
    name: 'one-person',
    title: 'PATCH from 64 connections',
    wanted: '0.2 ms',
    prepare: async side => {
      const patches = (name: () => string) => () =>
        side
          .sendAll(
            Array.from({ length: 5_000 }, (_, n) => ({
              method: 'PATCH' as const,
              path: `/v1/people/${name()}`,
              body: { first_name: `F${n}-${Math.random()}` },
            })),
          )
          .then(() => 5_000)
      return {
        small: { size: 'of many people', side, work: patches(() => side.randomPerson()) },
        large: { size: 'of one person', side, work: patches(() => 'p1') },
      }
    },
  },
]
