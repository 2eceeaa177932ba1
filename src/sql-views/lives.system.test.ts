import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { expectRefused, type Reader, useViews } from '../../test/support/sql-views.ts'
import { viewsRenewal } from './sql-views.ts'

const service = useOwnService()
const shop = useShop(service, 'orders', 'city', 'score', 'buyer', 'referrer')
const { ok } = shop
const { kith, connect, create, read } = useViews(service)

const person = (external_id: string, body: object = {}) => ok('POST', '/v1/people', { external_id, ...body })
const renewal = () => {
  const run = viewsRenewal(service.db)
  return () => run(new AbortController().signal)
}
const renew = () => renewal()()
const columnsOf = async ({ rows }: Reader, view = 'people') => {
  const found = await rows<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0`,
    [view],
  )
  return found.map(({ name }) => name)
}
const viewsIn = async ({ rows }: Reader) =>
  (
    await rows<{ name: string }>(
      `select table_name as name from information_schema.views where table_schema = current_schema order by 1`,
    )
  ).map(({ name }) => name)
const oldSchemas = () => service.sql(`select nspname as name from pg_namespace where nspname ~ '^kith_old_'`)
const scopes = ['people:read', 'records:read', 'changes:read']
const createRole = (fields: unknown, more: object = {}) =>
  ok('POST', '/v1/roles', { key: 'desk', scopes, fields, ...more })

describe('views', () => {
  it('follow the definitions: added, archived and retyped attributes, and new stacks', async () => {
    const run = renewal()
    await person('ada', { attribute_values: { city: 'Rome', late: 7 } })
    const reader = await read(shop)
    await ok('POST', '/v1/schema/attributes', { key: 'late', owner: 'people', type: 'number' })
    await ok('POST', '/v1/schema/stacks', { key: 'tickets', kind: 'item' })
    const { items } = await ok('GET', '/v1/schema/attributes')
    const idOf = (key: string) => (items as { id: number; key: string }[]).find(each => each.key === key)!.id
    await ok('PATCH', `/v1/schema/attributes/${idOf('city')}`, { state: 'archived' })
    await run()
    expect(await reader.rows('select late from people')).toEqual([{ late: '7' }])
    expect(await columnsOf(reader)).not.toContain('city')
    expect(await viewsIn(reader)).toContain('tickets')
    await ok('POST', '/v1/schema/attributes', { key: 'city', owner: 'people', type: 'json' })
    await run()
    expect(await reader.rows('select city from people')).toEqual([{ city: 'Rome' }])
    await ok('PATCH', `/v1/schema/attributes/${idOf('score')}`, { cardinality: 'many' })
    await run()
    expect(
      await reader.rows(
        `select format_type(atttypid, -1) as type from pg_attribute where attrelid = 'people'::regclass and attname = 'score'`,
      ),
    ).toEqual([{ type: 'numeric[]' }])
    expect(await oldSchemas()).toEqual([])
  })

  it('are not made anew by a change that they do not show', async () => {
    const run = renewal()
    const reader = await read(shop)
    await run()
    const oid = async () => reader.rows(`select 'people'::regclass::oid as oid`)
    const before = await oid()
    await ok('POST', '/v1/segments', { key: 'all', filter: {} })
    await run()
    expect(await oid()).toEqual(before)
    expect((await kith(['list', '--json'])).stdout).toContain('"state":"current"')
  })

  it('are renewed without waiting for a running query, which ends with what it began with', async () => {
    for (let n = 0; n < 30; n += 1) await person(`p${n}`)
    const reader = await read(shop)
    await reader.client.query('begin')
    await reader.client.query('declare c cursor for select external_id, city from people order by external_id')
    expect(await reader.rows('fetch 1 from c')).toHaveLength(1)
    await ok('POST', '/v1/schema/attributes', { key: 'late', owner: 'people', type: 'number' })
    const run = renewal()
    await run()
    const second = await connect(...(await credentialsOf(reader)))
    expect(await columnsOf(second)).toContain('late')
    expect(await reader.rows('fetch all from c')).toHaveLength(29)
    expect(await reader.rows('select late from people limit 1')).toEqual([{ late: null }])
    expect(await oldSchemas()).toHaveLength(1)
    await reader.client.query('commit')
    await renew()
    expect(await oldSchemas()).toEqual([])
  })

  it('close a prepared statement of earlier views, and leave what others built on them', async () => {
    await createRole({ people: { read: ['first_name', 'attribute_values.city'] } })
    await person('ada', { first_name: 'Ada', attribute_values: { city: 'canary' } })
    const reader = await read(shop, '--fields-of', 'desk')
    const [user] = await credentialsOf(reader)
    await service.sql('create schema analytics')
    await service.sql(`create view analytics.cities as select city from "${user}".people`)
    try {
      const prepared = { name: 'cities', text: 'select city from people' }
      expect((await reader.client.query(prepared)).rows).toEqual([{ city: 'canary' }])
      await ok('PATCH', '/v1/roles/desk', { fields: { people: { read: ['first_name'] } } })
      await renew()
      expect(await oldSchemas()).toHaveLength(1)
      const refused = await reader.client.query(prepared).then(
        () => '',
        (error: pg.DatabaseError) => error.code,
      )
      expect(refused).toMatch(/42501|42703/)
      expect(await service.sql('select 1 from analytics.cities')).toHaveLength(1)
    } finally {
      await service.sql('drop schema analytics cascade')
    }
    await renew()
    expect(await oldSchemas()).toEqual([])
  })

  it('are made by one of several processes at a time, and end equal', async () => {
    const reader = await read(shop)
    const runs = [renewal(), renewal(), renewal()]
    for (let n = 0; n < 5; n += 1) {
      await ok('POST', '/v1/schema/attributes', { key: `late${n}`, owner: 'people', type: 'number' })
      await Promise.all(runs.map(run => run()))
    }
    await renew()
    expect(await columnsOf(reader)).toContain('late4')
    expect(await oldSchemas()).toEqual([])
  })

  it('come back after an administrator dropped the schema', async () => {
    const reader = await read(shop)
    const [user] = await credentialsOf(reader)
    await service.sql(`drop schema "${user}" cascade`)
    await renew()
    expect(await reader.rows('select count(*)::integer as count from people')).toEqual([{ count: 0 }])
  })

  it('give nothing to another role of the same name, as after a restore on another server', async () => {
    const { role, password } = await create(shop)
    await service.sql(`drop owned by "${role}"`)
    await service.sql(`drop role "${role}"`)
    await service.sql(`create role "${role}" login password '${password}'`)
    try {
      await ok('POST', '/v1/schema/stacks', { key: 'tickets', kind: 'item' })
      await renew()
      const reader = await connect(role, password)
      await expectRefused(reader, `select * from "${role}".people`)
      expect((await kith(['list', '--json'])).stdout).toContain('"state":"without role"')
      expect((await kith(['drop', '--org', shop.key, '--yes'])).code).toBe(0)
      expect(await service.sql('select 1 from pg_roles where rolname = $1', [role])).toHaveLength(1)
    } finally {
      await service.sql(`drop role "${role}"`)
    }
  })
})

describe('views with the fields of a role', () => {
  it('show what a token of the role reads, and nothing else', async () => {
    const read = ['first_name', 'consents', 'email_consent', 'attribute_values.city', 'attribute_values.referrer']
    await createRole({ people: { read }, orders: { read: ['attribute_values.buyer'] } })
    await ok('POST', '/v1/schema/stacks', { key: 'secrets', kind: 'item' })
    const closed = {
      last_name: 'canary',
      email: 'canary@example.org',
      mobile_prefix: '+39',
      mobile_number: '3471234567',
      date_of_birth: '1990-02-03',
    }
    await person('ada', {
      first_name: 'Ada',
      ...closed,
      attribute_values: { city: 'Rome', score: 7, undeclared: 'canary' },
    })
    await ok('PATCH', '/v1/people/ada', {
      last_name: 'canary2',
      attribute_values: { city: 'Oslo', score: 8, referrer: 'bob' },
    })
    await ok('POST', '/v1/stacks/orders', { external_id: 'o', attribute_values: { buyer: 'ada', note: 'canary' } })
    await ok('POST', '/v1/stacks/secrets', { external_id: 'canary' })
    const reader = await openDesk()
    expect(await viewsIn(reader)).toEqual(['changes', 'consents', 'orders', 'people'])
    const always = ['state', 'version', 'created_at', 'updated_at']
    expect(await columnsOf(reader)).toEqual([
      'id',
      'external_id',
      'first_name',
      'email_consent',
      ...always,
      'city',
      'referrer',
    ])
    expect(await columnsOf(reader, 'orders')).toEqual(['id', 'record_id', 'external_id', ...always, 'buyer'])
    expect(await columnsOf(reader, 'consents')).not.toContain('address_refused')
    for (const view of await viewsIn(reader))
      expect(JSON.stringify(await reader.rows(`select * from ${view}`)), view).not.toMatch(
        /canary|1990-02-03|3471234567|score/,
      )
    const token = (
      await ok('POST', '/v1/tokens', { scopes, role: 'desk', name: `desk of ${shop.key}`, expires_in: 600 })
    ).token
    const response = await fetch(`${service.address}/v1/changes`, { headers: { Authorization: `Bearer ${token}` } })
    const { data } = (await response.json()) as { data: { items: Record<string, unknown>[] } }
    const shown = await reader.rows(`select sequence::integer, after, links from changes order by 1`)
    const referrer = (await reader.rows(`select id from people where external_id = 'bob'`))[0]!.id
    expect(shown.map(({ sequence }) => sequence)).toEqual(
      data.items.filter(({ subject }) => subject === 'person' || subject === 'record').map(({ sequence }) => sequence),
    )
    const last = shown.find(({ links }) => links !== null && 'referrer' in (links as object))
    expect(last).toMatchObject({
      after: { attribute_values: { city: 'Oslo' } },
      links: { referrer: { after: [referrer] } },
    })
  })

  it('lose a field, an owner and everything when the role does, and have no view without its scope', async () => {
    await createRole({ people: { read: ['first_name', 'consents'] }, orders: { read: ['*'] } })
    const reader = await openDesk()
    const run = renewal()
    expect(await viewsIn(reader)).toEqual(['changes', 'consents', 'orders', 'people'])
    await ok('PATCH', '/v1/roles/desk', { fields: { people: { read: ['language'] } } })
    await run()
    expect(await viewsIn(reader)).toEqual(['changes', 'people'])
    expect(await columnsOf(reader)).toContain('language')
    expect(await columnsOf(reader)).not.toContain('first_name')
    await ok('PATCH', '/v1/roles/desk', { scopes: ['records:read'] })
    await run()
    expect(await viewsIn(reader)).toEqual([])
    await ok('PATCH', '/v1/roles/desk', { scopes, fields: null })
    await run()
    expect(await viewsIn(reader)).toEqual(['changes', 'consents', 'orders', 'people'])
    expect(await reader.rows(`select distinct subject from changes`)).toEqual([])
    await ok('PATCH', '/v1/roles/desk', { state: 'archived' })
    await run()
    expect(await viewsIn(reader)).toEqual([])
    expect((await kith(['create', '--org', shop.key, '--fields-of', 'desk', '--schema', 'another'])).stderr).toContain(
      'There is no active role "desk"',
    )
  })
})

const openDesk = () => read(shop, '--fields-of', 'desk')

/** The name and the password of a connection. */
const credentialsOf = async ({ client }: Reader): Promise<[string, string]> => {
  const { user, password } = client as unknown as { user: string; password: string }
  return [user, password]
}
