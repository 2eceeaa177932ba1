import { ask, importPeople } from '../requests.ts'
import type { Side } from '../side.ts'
import { type GrowthRow, repeat } from './row.ts'

const perBatch = 5_000

async function declareAttributes(side: Side, count: number) {
  const items = Array.from({ length: count }, (_, n) => ({ key: `a${n}`, owner: 'people', type: 'text' }))
  for (let first = 0; first < count; first += perBatch)
    await ask(side, {
      method: 'POST',
      path: '/v1/schema/attributes/batch',
      body: { items: items.slice(first, first + perBatch) },
    })
}

const perLine = 250

/** Gives each person this number of values, which no attribute declares. */
async function addValues(side: Side, count: number) {
  const values = Array.from({ length: count }, (_, n) => [`k${n}`, `value ${(n * 7_919) % 10_007}`])
  for (let first = 0; first < count; first += perLine) {
    const attribute_values = Object.fromEntries(values.slice(first, first + perLine))
    const lines = Array.from(
      { length: side.people },
      (_, index) => `${JSON.stringify({ external_id: `p${index + 1}`, attribute_values })}\n`,
    )
    await importPeople(side, lines, 'updated')
  }
}

const changes = 100
const patches = 5_000

export const definitionRows: readonly GrowthRow[] = [
  {
    name: 'definitions',
    title: 'change of the name of an attribute',
    wanted: '3,000 µs + 6,000 µs',
    prepare: async (small, openSide) => {
      const large = await openSide('definitions_large')
      await declareAttributes(small, 10)
      await declareAttributes(large, 1_000)
      const sized = (side: Side, size: string) => ({
        size,
        side,
        work: repeat(changes, () =>
          ask(side, { method: 'PATCH', path: '/v1/schema/attributes/5', body: { name: `n${Math.random()}` } }),
        ),
      })
      return { small: sized(small, '10 attributes'), large: sized(large, '1,000 attributes') }
    },
  },
  {
    name: 'patch-attribute',
    title: 'PATCH of one attribute of a person',
    wanted: '120 µs + 120 µs',
    prepare: async (small, openSide) => {
      const large = await openSide('patch_attribute_large')
      await addValues(small, 10)
      await addValues(large, 500)
      const sized = (side: Side, size: string) => ({
        size,
        side,
        work: async () => {
          await side.sendAll(
            Array.from({ length: patches }, () => ({
              method: 'PATCH' as const,
              path: `/v1/people/${side.randomPerson()}`,
              body: { attribute_values: { k5: `value ${Math.random()}` } },
            })),
          )
          return patches
        },
      })
      return { small: sized(small, '10 values'), large: sized(large, '500 values') }
    },
  },
]
