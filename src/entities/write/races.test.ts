import { describe, expect, it } from 'vitest'
import { useOwnService } from '../../../test/support/service.ts'
import { createShop, type Shop } from '../../../test/support/shop.ts'
import { names, resultOf, write, writeAll } from '../../../test/support/writes.ts'
import type { Database } from '../../db/db.ts'
import type { Write } from '../write-request.ts'

const service = useOwnService()

const shop = () => createShop(service, 'referrer', 'friends', 'employer')
const run = (organization: Shop, writes: Write[], db: Database = service.db) => writeAll(db, organization, writes)

describe('concurrent writes', () => {
  it('create one placeholder when 200 of them name the same new target', async () => {
    const organization = await shop()
    const replies = await Promise.all(
      names('p', 200).map(name =>
        organization.send('POST', '/v1/people', {
          external_id: name,
          attribute_values: { referrer: 'hub', employer: 'acme' },
        }),
      ),
    )
    expect(new Set(replies.map(reply => reply.status))).toEqual(new Set([201]))
    const rows = await service.sql<{ external_id: string }>(
      'select external_id from entities where organization_id = $1 and not active order by external_id',
      [organization.id],
    )
    expect(rows).toEqual([{ external_id: 'acme' }, { external_id: 'hub' }])
  })

  it('create a person once and refuse the other 49 creates with 409', async () => {
    const organization = await shop()
    const replies = await Promise.all(
      names('', 50).map(first_name => organization.send('POST', '/v1/people', { external_id: 'one', first_name })),
    )
    expect(replies.filter(reply => reply.status === 201)).toHaveLength(1)
    expect(replies.filter(reply => reply.status === 409)).toHaveLength(49)
  })

  it('leave one link of a relationship that allows one target', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a')])
    await Promise.all(
      names('target', 40).map(referrer =>
        organization.send('PATCH', '/v1/people/a', { attribute_values: { referrer } }),
      ),
    )
    const links = await service.sql('select 1 from links where organization_id = $1', [organization.id])
    expect(links).toHaveLength(1)
  })

  it('lose no update of one person', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a')])
    await Promise.all(
      names('k', 60).map(key => organization.send('PATCH', '/v1/people/a', { attribute_values: { [key]: true } })),
    )
    const { body } = await organization.send('GET', '/v1/people/a')
    expect(Object.keys(body.data.attribute_values)).toHaveLength(60)
    expect(body.data.version).toBe(61)
  })

  it('lose no update and no change number when 60 people link to each other, by name and by id', async () => {
    const organization = await shop()
    const people = names('p', 60)
    await run(
      organization,
      people.map(name => write('create', name)),
    )
    const rows = await service.sql<{ id: string; external_id: string }>(
      'select id, external_id from entities where organization_id = $1',
      [organization.id],
    )
    const replies = await Promise.all(
      rows.flatMap(({ id, external_id }, index) => [
        organization.send('PATCH', `/v1/people/${external_id}`, {
          attribute_values: { referrer: people[(index + 7) % 60], employer: `company${index % 3}` },
        }),
        organization.send('PATCH', `/v1/people/internal/${id}`, { attribute_values: { friends: [people[index]] } }),
      ]),
    )
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    const links = await service.sql('select 1 from links where organization_id = $1', [organization.id])
    expect(links).toHaveLength(180)
    const log = await service.sql<{ sequence: number }>(
      'select sequence from changes where organization_id = $1 order by sequence',
      [organization.id],
    )
    // 60 creations, 120 patches, and 3 placeholders of companies.
    expect(log.slice(-183).map(({ sequence }) => sequence - log.at(-183)!.sequence)).toEqual([...Array(183).keys()])
    const versions = await service.sql<{ version: number }>(
      'select distinct version from entities where organization_id = $1 and active',
      [organization.id],
    )
    expect(versions).toEqual([{ version: 3 }])
  })

  it('take effect in some order, without a deadlock, when they rename in a circle', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a'), write('create', 'b')])
    for (let round = 0; round < 10; round += 1) {
      const replies = await Promise.all([
        organization.send('PATCH', '/v1/people/a', { external_id: 'b' }),
        organization.send('PATCH', '/v1/people/b', { external_id: 'a' }),
      ])
      for (const { status } of replies) expect([200, 400, 500]).toContain(status)
      for (const { body } of replies) expect([undefined, 'duplicate_entry', 'not_found']).toContain(body.error)
    }
    const rows = await service.sql<{ external_id: string }>(
      'select external_id from entities where organization_id = $1 order by external_id',
      [organization.id],
    )
    expect(rows.map(row => row.external_id)).toEqual(['a', 'b'])
  })

  it('are refused by the definitions that stand, if outdated ones accept them', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a', { attribute_values: { size: 'text' } })])
    const other = await service.db.connect()
    try {
      // Another process declares the attribute. This process learns of it only when it writes.
      await other.query('begin')
      await other.query(
        `insert into attributes (organization_id, id, owner_stack_id, key, name, type, cardinality, indexed, state, created_at, updated_at, version)
         values ($1, 99, 0, 'size', 'size', 'number', 'one', false, 'active', now(), now(), 1000)`,
        [organization.id],
      )
      await other.query('update change_heads set schema_version = schema_version + 1 where organization_id = $1', [
        organization.id,
      ])
      await other.query('commit')
    } finally {
      await other.end()
    }
    const refused = await organization.send('PATCH', '/v1/people/a', { attribute_values: { size: 'text again' } })
    expect([refused.status, refused.body.details?.[0]?.path]).toEqual([400, '/attribute_values/size'])
  })

  it('are accepted by the definitions that stand, if outdated ones refuse them', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a')])
    const other = await service.db.connect()
    try {
      await other.query('begin')
      await other.query(
        `insert into consent_types values ($1, 2, 'new', 'new', null, 'active', false, false, '[{"channel": "email", "is_default": false}]', now(), now(), 1000)`,
        [organization.id],
      )
      await other.query('update change_heads set schema_version = schema_version + 1 where organization_id = $1', [
        organization.id,
      ])
      await other.query('commit')
    } finally {
      await other.end()
    }
    const answer = { consent_type_id: 2, channel: 'email', state: true }
    expect((await organization.send('PATCH', '/v1/people/a', { consents: [answer] })).status).toBe(200)
  })

  it('are done even if the definitions that changed cannot be read after them', async () => {
    const organization = await shop()
    const { query } = service.db
    let isLosing = false
    const losing: Database = {
      ...service.db,
      query: (statement, values, signal) =>
        isLosing && statement.name === 'read_definitions'
          ? Promise.reject(new Error('lost'))
          : query(statement, values, signal),
    }
    await run(organization, [write('create', 'a')], losing)
    await service.sql('update change_heads set schema_version = schema_version + 1 where organization_id = $1', [
      organization.id,
    ])
    isLosing = true
    const [outcome] = await run(organization, [write('patch', 'a', { first_name: 'Ada' })], losing)
    expect(resultOf(outcome)).toBe('updated')
  })

  it('wait for the writer that holds the head, and see what it has stored', async () => {
    const organization = await shop()
    await run(organization, [
      write('create', 'a', { last_name: 'first' }),
      write('create', 'c', { last_name: 'next' }),
      write('create', 'd'),
    ])
    const other = await service.db.connect()
    try {
      const rename = (from: string, to: string) =>
        other.query('update entities set external_id = $3 where organization_id = $1 and external_id = $2', [
          organization.id,
          from,
          to,
        ])
      await other.query('begin')
      await other.query('select from change_heads where organization_id = $1 for update', [organization.id])
      const writing = Promise.all([
        organization.send('PATCH', '/v1/people/a', { first_name: 'Ada' }),
        organization.send('PATCH', '/v1/people/d', { external_id: 'z' }),
        organization.send('PATCH', '/v1/people/d', { attribute_values: { referrer: 'z' } }),
      ])
      await untilLockWait()
      await rename('a', 'z')
      await rename('c', 'a')
      await other.query('commit')
      const [patched, renamed, linked] = await writing
      expect([patched.status, renamed.body.error, linked.status]).toEqual([200, 'duplicate_entry', 200])
      const read = async (name: string) => (await organization.send('GET', `/v1/people/${name}`)).body.data
      expect(await read('a')).toMatchObject({ first_name: 'Ada', last_name: 'next' })
      expect(await read('z')).toMatchObject({ first_name: null, last_name: 'first' })
      expect((await read('d')).attribute_values).toEqual({ referrer: 'z' })
    } finally {
      await other.end()
    }
  })
})

/** Resolves when a statement of the service waits for a lock. */
const untilLockWait = () =>
  expect
    .poll(() =>
      service.sql(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and state = 'active'`,
      ),
    )
    .not.toEqual([])
