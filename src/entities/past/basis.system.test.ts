import fc from 'fast-check'
import { expect, it } from 'vitest'
import { importLines, linesFrom } from '../../../test/support/lines.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'
import { basisInterval } from './past-state-sql.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer')
const { send, ok } = shop

const names = fc.constantFrom('bob', 'eve', 'kim')
const values = fc.option(fc.constantFrom<unknown>(0, 1, 'x', [1, 2], { a: null }))
const body = fc.record(
  {
    first_name: fc.constantFrom(null, 'Ada', 'Augusta'),
    email_consent: fc.boolean(),
    attribute_values: fc.record(
      {
        a: values,
        b: values,
        referrer: fc.option(names),
        friends: fc.option(fc.array(names, { maxLength: 3 })),
        employer: fc.option(fc.constantFrom('acme', 'hal')),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
)
const bodies = fc.array(body, { minLength: 2.5 * basisInterval, maxLength: 3 * basisInterval })

const idOf = async (external_id: string) => (await ok('GET', `/v1/people/${external_id}`)).id as string
/** Imports the bodies as lines of one person, and returns the number of versions. */
async function write(external_id: string, given: readonly object[]): Promise<number> {
  await importLines(shop, '/v1/people/import', linesFrom(given.map(each => ({ external_id, ...each }))))
  return (await ok('GET', `/v1/people/${external_id}`)).version
}
const basesOf = async (id: string) =>
  (
    await service.sql<{ version: number; basis: number[] }>(
      'select version, basis from changes where organization_id = $1 and entity_id = $2 and basis is not null order by version',
      [shop.id, id],
    )
  ).map(({ version, basis }) => ({ version, basis }))
const forgetBases = () => service.sql('update changes set basis = null where organization_id = $1', [shop.id])
const readVersions = async (id: string, last: number) => {
  const read: unknown[] = []
  for (let version = 1; version <= last; version += 1) {
    const { status, body: answer } = await send('GET', `/v1/people/internal/${id}?version=${version}`)
    read.push([status, answer.data])
  }
  return read
}

it('reads every version of a long history as it follows from all changes', { timeout: 300_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(bodies, bodies, async (given, more) => {
      await shop.renew('referrer', 'friends', 'employer')
      for (const name of ['bob', 'eve', 'kim']) await ok('POST', '/v1/people', { external_id: name })
      await write('ada', given)
      const id = await idOf('ada')
      await ok('DELETE', '/v1/people/ada')
      await ok('POST', `/v1/people/internal/${id}/restore`)
      const last = await write('ada', more)
      const bases = await basesOf(id)
      expect(bases.map(({ version }) => version % basisInterval)).toEqual(bases.map(() => 0))
      const read = await readVersions(id, last)
      await forgetBases()
      expect(await readVersions(id, last)).toEqual(read)
    }),
    { numRuns: Math.min(3, someRuns(3).numRuns), endOnFailure: true },
  )
})

it('stores a basis of every 128th version: the creation, and the last change of each key', async () => {
  const given = Array.from({ length: 2 * basisInterval }, (_, n) => ({
    first_name: `F${n}`,
    ...(n === 0 && { last_name: 'L', attribute_values: { once: 1 } }),
    ...(n === 5 && { attribute_values: { later: 1, referrer: 'bob' } }),
    ...(n === basisInterval && { attribute_values: { later: 2 } }),
  }))
  expect(await write('ada', given)).toBe(2 * basisInterval)
  expect(await basesOf(await idOf('ada'))).toEqual([
    { version: basisInterval, basis: [1, 6, basisInterval] },
    { version: 2 * basisInterval, basis: [1, 6, basisInterval + 1, 2 * basisInterval] },
  ])
})

it('returns 404 once the retention of the log has removed the creation', async () => {
  await write(
    'ada',
    Array.from({ length: basisInterval + 5 }, (_, n) => ({ first_name: `F${n}` })),
  )
  const id = await idOf('ada')
  expect((await send('GET', `/v1/people/internal/${id}?version=${basisInterval + 1}`)).status).toBe(200)
  await service.sql(
    `update changes set before = null, after = '{}' where organization_id = $1 and entity_id = $2 and version = 1`,
    [shop.id, id],
  )
  expect((await send('GET', `/v1/people/internal/${id}?version=${basisInterval + 1}`)).status).toBe(404)
})

it('follows from all changes again once an erasure has taken the values of a merge out of the log', async () => {
  const other = await ok('POST', '/v1/people', { external_id: 'other', last_name: 'L', attribute_values: { a: [2] } })
  await ok('POST', '/v1/people', { external_id: 'ada', attribute_values: { a: [1], b: 1 } })
  await ok('POST', '/v1/people/ada/merge', { from: 'other' })
  const merged = await write(
    'ada',
    Array.from({ length: basisInterval }, (_, n) => ({ first_name: `F${n}` })),
  )
  const id = await idOf('ada')
  expect((await ok('GET', `/v1/people/internal/${id}?version=${merged}`)).last_name).toBe('L')
  expect(await basesOf(id)).toHaveLength(1)
  await ok('POST', '/v1/people/ada/unmerge', { from: 'other' })
  await ok('POST', `/v1/people/internal/${other.id}/erase`, { reason: 'Request of the person' })
  expect(await basesOf(id)).toEqual([])
  const read = await ok('GET', `/v1/people/internal/${id}?version=${merged}`)
  expect(read).toMatchObject({
    first_name: `F${basisInterval - 1}`,
    last_name: null,
    attribute_values: { a: [1], b: 1 },
  })
})

it('reads a time of a long history by the number of the change, also where versions have gaps', async () => {
  await write(
    'ada',
    Array.from({ length: 300 }, (_, n) => ({ first_name: `F${n}` })),
  )
  const id = await idOf('ada')
  const before = (await shop.head()) - 300
  // An entity that takes a name of another one has such gaps. The versions are negative first, because they are unique.
  await service.sql('update changes set version = -3 * version where organization_id = $1', [shop.id])
  await service.sql(
    `update changes c set version = -c.version, at = timestamptz '2026-01-01Z' + (c.sequence - $2) * interval '1 s'
     where c.organization_id = $1`,
    [shop.id, before],
  )
  await forgetBases()
  for (const n of [1, 2, 3, 150, 299, 300]) {
    const at = new Date(Date.parse('2026-01-01') + n * 1_000 + 500).toISOString()
    const read = await ok('GET', `/v1/people/internal/${id}?at=${at}`)
    expect([read.first_name, read.as_of.version]).toEqual([`F${n - 1}`, 3 * n])
  }
  expect((await send('GET', `/v1/people/internal/${id}?at=2026-01-01T00:00:00Z`)).status).toBe(404)
})
