import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { MatchKind } from '../client/index.ts'
import type { ImportItem } from './item.ts'
import { EarlierLines, maxLinesOfAddress, SharedAddresses } from './shared-addresses.ts'

const itemOf = (body: object): ImportItem => ({ line: 1, body: ` ${JSON.stringify(body)}`, original: [] })
async function* batchesOf(items: ImportItem[]) {
  yield items
}
const matchOf = (item: ImportItem) => (JSON.parse(item.body!) as { match?: MatchKind[] }).match
const match: MatchKind[] = ['external_id', 'email', 'mobile']

it('lets a line recognize nobody by an address exactly if more than ten lines of the file have it', async () => {
  const bodies = fc.array(
    fc.record(
      {
        external_id: fc.constantFrom('a', 'b'),
        email: fc.constantFrom('info@example.com', 'INFO@example.com', 'ada@example.com'),
        mobile_number: fc.constantFrom('+39 333 1234567', '0039333/1234567', '+49 30 1'),
      },
      { requiredKeys: [] },
    ),
    { maxLength: 40 },
  )
  await fc.assert(
    fc.asyncProperty(bodies, async all => {
      const items = all.map(itemOf)
      const shared = new SharedAddresses(match)
      await shared.count(batchesOf(items), () => false)
      const isShared = (same: (body: (typeof all)[number]) => boolean) => all.filter(same).length > maxLinesOfAddress
      for (const [index, body] of all.entries()) {
        const email = body.email?.toLowerCase()
        const isItalian = body.mobile_number?.includes('39')
        const kept: MatchKind[] = [
          ...(body.external_id ? (['external_id'] as const) : []),
          ...(email && !isShared(other => other.email?.toLowerCase() === email) ? (['email'] as const) : []),
          ...(body.mobile_number && !isShared(other => other.mobile_number?.includes('39') === isItalian)
            ? (['mobile'] as const)
            : []),
        ]
        const isWhole = kept.length === Object.keys(body).length
        expect(matchOf(shared.spare(items[index]!))).toEqual(
          isWhole ? undefined : kept.length === 0 ? ['external_id'] : kept,
        )
      }
    }),
  )
})

it('leaves a line as it is that has a match of its own, is no object, or was refused', async () => {
  const shared = new SharedAddresses(match)
  const items = Array.from({ length: 20 }, () => itemOf({ email: 'info@example.com', match: ['email'] }))
  const broken: ImportItem[] = ['[]', 'no json', null].map(body => ({ line: 1, body, original: [] }))
  await shared.count(batchesOf([...items, ...broken]), () => false)
  for (const item of [...items, ...broken]) expect(shared.spare(item)).toBe(item)
})

it('counts the stored lines that meet the person of an earlier line, by any of their values', () => {
  const earlier = new EarlierLines(match)
  const refusal = { code: 'unfit', message: '', details: [] }
  earlier.add([
    itemOf({ external_id: 'a', email: 'ada@example.com' }),
    { ...itemOf({ email: 'ada@example.com' }), refusal },
    itemOf({ email: 'ADA@example.com', mobile_number: '1', mobile_prefix: '+39' }),
    itemOf({ mobile_number: '+391' }),
    itemOf({ external_id: 'b' }),
    itemOf({}),
  ])
  expect(earlier.count).toBe(2)
})
