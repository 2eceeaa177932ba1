import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../../test/support/lines.ts'
import { momentBetween } from '../../../test/support/moments.ts'
import { history, repeatReads } from '../../../test/support/past-reads.ts'
import { someRuns } from '../../../test/support/runs.ts'
import { useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer')
const { send, ok } = shop

const create = (body: object) => ok('POST', '/v1/people', body)
const read = (external_id: string) => ok('GET', `/v1/people/${external_id}`)
const patch = (external_id: string, body: object) => ok('PATCH', `/v1/people/${external_id}`, body)
const head = async () =>
  Number((await service.sql('select sequence from change_heads where organization_id = $1', [shop.id]))[0]!.sequence)

describe('a read with at or version', () => {
  it('returns the entity of then, with the time, the last change and the version', async () => {
    await create({ external_id: 'ada', first_name: 'Ada', attribute_values: { a: 1, referrer: 'bob' } })
    const first = await read('ada')
    const at = await momentBetween()
    const sequence = await head()
    await patch('ada', { first_name: 'A', attribute_values: { a: null, b: 2, referrer: null } })
    const then = await send('GET', `/v1/people/ada?at=${at}`)
    expect(then.body.data).toEqual({ ...first, as_of: { at, sequence, version: 1 } })
    expect(then.headers.get('ETag')).toBe('"1"')
    const byVersion = await ok('GET', `/v1/people/internal/${first.id}?version=1`)
    expect(byVersion).toEqual({ ...first, as_of: { at: first.updated_at, sequence, version: 1 } })
    const today = await read('ada')
    expect(await ok('GET', '/v1/people/ada?version=2')).toEqual({ ...today, as_of: expect.anything() })
  })

  it('shows targets by their names of then, and hides those that were deleted by then', async () => {
    const employer = await ok('POST', '/v1/stacks/companies', { external_id: 'acme' })
    await create({ external_id: 'ada', attribute_values: { friends: ['bob', 'eve', 'kim'], employer: 'acme' } })
    const [linked, afterLinking] = [await read('ada'), await momentBetween()]
    await patch('bob', { external_id: 'robert' })
    await ok('PATCH', `/v1/stacks/companies/internal/${employer.record_id}`, { external_id: null })
    const [renamed, afterRenaming] = [await read('ada'), await momentBetween()]
    expect(renamed.attribute_values).toEqual({
      friends: ['robert', 'eve', 'kim'],
      employer: { record_id: employer.record_id },
    })
    await ok('DELETE', '/v1/people/eve')
    await create({ external_id: 'eve' })
    const [without, afterDeletion] = [await read('ada'), await momentBetween()]
    await patch('ada', { attribute_values: { friends: null, employer: null } })
    for (const [expected, at] of [
      [linked, afterLinking],
      [renamed, afterRenaming],
      [without, afterDeletion],
    ])
      expect(await ok('GET', `/v1/people/ada?at=${at}`)).toEqual({ ...expected, as_of: expect.anything() })
    expect(without.version).toBe(1)
  })

  it('reads a phone without a prefix by the country of today, also before a later definition', async () => {
    await ok('PATCH', '/v1/schema/settings', { default_country: 'IT' })
    const created = await create({ external_id: 'ada', mobile_number: '320 123 4567' })
    expect(created.mobile_e164).toBe('+393201234567')
    await ok('POST', '/v1/schema/attributes', { key: 'later', owner: 'people', type: 'text' })
    expect(await ok('GET', '/v1/people/ada?version=1')).toEqual({ ...created, as_of: expect.anything() })
    await ok('PATCH', '/v1/schema/settings', { default_country: null })
  })

  it('shows the effective consents by the consent types of then', async () => {
    await create({
      external_id: 'ada',
      email_consent: true,
      consents: [{ consent_type_id: 1, channel: 'sms', state: false }],
    })
    const reads: [{ consents: object[] }, string][] = []
    const keep = async () => reads.push([await read('ada'), await momentBetween()])
    await keep()
    await ok('POST', '/v1/schema/consent-types', { key: 'news', default_state: true, channels: [{ channel: 'sms' }] })
    await keep()
    await ok('PATCH', '/v1/schema/consent-types/2', { mandatory: true, channels: [{ channel: 'email' }] })
    await keep()
    await ok('PATCH', '/v1/schema/consent-types/1', { state: 'archived' })
    await keep()
    await ok('PATCH', '/v1/schema/consent-types/1', { state: 'active' })
    await patch('ada', { email_consent: false })
    expect(new Set(reads.map(([{ consents }]) => JSON.stringify(consents))).size).toBe(4)
    for (const [expected, at] of reads)
      expect(await ok('GET', `/v1/people/ada?at=${at}`)).toEqual({ ...expected, as_of: expect.anything() })
  })

  it('reads a deleted entity by its internal identifier, and not the time after its deletion', async () => {
    const { id } = await create({ external_id: 'ada', attribute_values: { referrer: 'bob' } })
    const [expected, at] = [await read('ada'), await momentBetween()]
    await ok('DELETE', '/v1/people/ada')
    const after = await momentBetween()
    const path = `/v1/people/internal/${id}`
    for (const query of [`at=${at}`, 'version=1'])
      expect(await ok('GET', `${path}?${query}`)).toEqual({ ...expected, as_of: expect.anything() })
    for (const address of [`/v1/people/ada?at=${at}`, `${path}?at=${after}`, `${path}?version=2`])
      expect((await send('GET', address)).status).toBe(404)
    await ok('POST', `${path}/restore`)
    expect((await send('GET', `${path}?at=${after}`)).status).toBe(404)
    expect(await ok('GET', `/v1/people/ada?at=${at}`)).toEqual({ ...expected, as_of: expect.anything() })
  })

  it('shows a link to a target that was deleted and restored, but not in between', async () => {
    const { id } = await create({ external_id: 'bob' })
    await create({ external_id: 'ada', attribute_values: { friends: ['bob', 'eve'] } })
    const [linked, at] = [await read('ada'), await momentBetween()]
    await ok('DELETE', '/v1/people/bob')
    const [unlinked, whileDeleted] = [await read('ada'), await momentBetween()]
    expect(unlinked.attribute_values).toEqual({ friends: ['eve'] })
    await ok('POST', `/v1/people/internal/${id}/restore`)
    const afterRestore = await momentBetween()
    const reads = { [at]: linked, [whileDeleted]: unlinked, [afterRestore]: linked }
    for (const [moment, expected] of Object.entries(reads))
      expect(await ok('GET', `/v1/people/ada?at=${moment}`)).toEqual({ ...expected, as_of: expect.anything() })
  })

  it('shows the links of an import between its own lines', async () => {
    const lines = [
      { external_id: 'p', attribute_values: { friends: ['q', 'p'] } },
      { external_id: 'q', attribute_values: { referrer: 'p' } },
    ]
    await importLines(shop, '/v1/people/import', linesFrom(lines))
    // The first line creates q as a placeholder, as two requests would.
    const own = [1, 2]
    for (const [index, { external_id, attribute_values }] of lines.entries())
      expect((await ok('GET', `/v1/people/${external_id}?version=${own[index]}`)).attribute_values).toEqual(
        attribute_values,
      )
  })

  it('counts a change with an earlier time and a higher number as done', async () => {
    await create({ external_id: 'ada' })
    const at = await momentBetween()
    await patch('ada', { first_name: 'A' })
    await patch('ada', { first_name: 'B' })
    const sequence = await head()
    await service.sql(
      `update changes set at = $3::timestamptz - interval '1 ms' where organization_id = $1 and sequence = $2`,
      [shop.id, sequence, at],
    )
    await service.sql(`update change_heads set max_setback = interval '1 minute' where organization_id = $1`, [shop.id])
    expect(await ok('GET', `/v1/people/ada?at=${at}`)).toMatchObject({
      first_name: 'B',
      as_of: { at, sequence, version: 3 },
    })
  })

  it.each(['a change of a person', 'a change of a definition'])(
    'finds %s that another host with a later clock preceded',
    async kind => {
      await create({ external_id: 'ada' })
      await patch('ada', { first_name: 'A' })
      const preceding = await head()
      // Simulates a host whose clock is an hour ahead.
      const later = `interval '1 hour'`
      await service.sql(`update changes set at = at + ${later} where organization_id = $1 and sequence = $2`, [
        shop.id,
        preceding,
      ])
      await service.sql(`update change_heads set latest_at = latest_at + ${later} where organization_id = $1`, [
        shop.id,
      ])
      if (kind.endsWith('person')) await patch('ada', { first_name: 'B' })
      else await ok('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' })
      const at = await momentBetween()
      for (let n = 0; n < 5; n += 1) await patch('ada', { first_name: `C${n}` })
      expect((await ok('GET', `/v1/people/ada?at=${at}`)).as_of.sequence).toBe(preceding + 1)
      const [{ setback }] = (await service.sql(
        `select extract(epoch from max_setback)::float8 as setback from change_heads where organization_id = $1`,
        [shop.id],
      )) as [{ setback: number }]
      expect(Math.abs(setback - 3_600)).toBeLessThan(60)
    },
  )

  it('accepts every offset and precision of a time', async () => {
    await create({ external_id: 'ada' })
    const { updated_at } = await read('ada')
    const next = new Date(Date.parse(updated_at) + 7_200_000).toISOString().replace('Z', '999999%2B02:00')
    await momentBetween()
    const at = updated_at.replace('Z', '999Z')
    expect((await ok('GET', `/v1/people/ada?at=${next}`)).as_of).toMatchObject({ at, version: 1 })
    for (const early of ['0001-01-01T00:00:00%2B23:59', '1999-12-31T23:59:59Z'])
      expect((await send('GET', `/v1/people/ada?at=${early}`)).status).toBe(404)
  })
})

describe('a read with at or version is refused', () => {
  it.each([
    ['at=2026-01-01T00:00:00Z&version=1', '/version'],
    ['at=9999-12-31T23:59:59Z', '/at'],
    ['at=yesterday', '/at'],
    ['at=2026-01-01', '/at'],
    ['at=', '/at'],
    ['version=0', '/version'],
    ['version=-1', '/version'],
    ['version=1.5', '/version'],
    ['version=x', '/version'],
    ['version=', '/version'],
    ['version=2147483648', '/version'],
    ['version=1&version=2', '/version'],
  ])('for the query %s', async (query, path) => {
    await create({ external_id: 'ada' })
    const { status, body } = await send('GET', `/v1/people/ada?${query}`)
    expect([status, body.error, body.details?.map(detail => detail.path)]).toEqual([400, 'invalid_parameter', [path]])
  })

  it('without both scopes', async () => {
    await create({ external_id: 'ada' })
    for (const [scope, missing] of [
      ['people:read', 'changes:read'],
      ['changes:read', 'people:read'],
      ['records:read changes:read', 'people:read'],
    ] as const) {
      const sender = service.sender(await service.tokenFor(shop.key, scope))
      const { status, headers } = await sender('GET', '/v1/people/ada?version=1')
      expect([status, headers.get('WWW-Authenticate')]).toEqual([403, expect.stringContaining(`scope="${missing}"`)])
    }
  })

  it('before the creation, for a version that never was, and for a record with the identifier of a person', async () => {
    const before = await momentBetween()
    const { id } = await create({ external_id: 'ada' })
    for (const query of [`at=${before}`, 'version=2', 'version=2147483647']) {
      const { status, body } = await send('GET', `/v1/people/ada?${query}`)
      expect([status, body.error]).toEqual([404, 'not_found'])
    }
    expect(
      (await send('GET', `/v1/stacks/companies/internal/${id.replaceAll('-', '').slice(0, 24)}?version=1`)).status,
    ).toBe(404)
  })
})

it('does not take the names of unknown parameters for a moment', async () => {
  await create({ external_id: 'ada' })
  expect(await ok('GET', '/v1/people/ada?cache=1')).not.toHaveProperty('as_of')
})

/** The number of histories. 40 took 100 s on two cores. */
const histories = Number(process.env.KITH_TEST_HISTORIES ?? someRuns(5).numRuns)

it('repeats every read of random histories, by time and by version', {
  timeout: 60_000 + histories * 5_000,
}, async () => {
  let repeated = 0
  await fc.assert(
    fc.asyncProperty(history, async steps => {
      const result = await repeatReads(service, steps)
      repeated += result.repeated
      expect(result.differences).toEqual([])
    }),
    { numRuns: histories, interruptAfterTimeLimit: 50_000 + histories * 5_000, endOnFailure: histories > 5 },
  )
  console.log(`as of: ${histories} histories, ${repeated} reads repeated`)
})
