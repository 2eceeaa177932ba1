import { describe, expect, it } from 'vitest'
import { useService } from '../../../test/support/service.ts'
import { createShop, type Shop } from '../../../test/support/shop.ts'
import { names, recordStatements, resultOf, write, writeAll } from '../../../test/support/writes.ts'
import type { Database } from '../../db/db.ts'
import type { EntityBody, Write } from '../write-request.ts'

const service = useService()

const shop = () => createShop(service, 'referrer', 'friends', 'employer')
const run = (organization: Shop, writes: Write[], db: Database = service.db) => writeAll(db, organization, writes)

describe('a set', () => {
  it.each([1, 50])('creates %i people with the statements of lock, read, insert and apply', async count => {
    const organization = await shop()
    const { db, statements, transactions } = recordStatements(service.db)
    const outcomes = await run(
      organization,
      names('p', count).map(name => write('create', name, { first_name: 'Ada' })),
      db,
    )
    expect(outcomes.map(resultOf)).toEqual(Array(count).fill('created'))
    expect(statements).toEqual([
      'lock_head',
      'read_named',
      'read_names_left',
      'insert_entities',
      'store_changes',
      'insert_changes',
    ])
    expect(transactions()).toBe(1)
  })

  it.each([1, 50])('patches plain fields of %i people with the statements of lock, read and apply', async count => {
    const organization = await shop()
    await run(
      organization,
      names('p', count).map(name => write('create', name)),
    )
    const { db, statements } = recordStatements(service.db)
    await run(
      organization,
      names('p', count).map(name => write('patch', name, { attribute_values: { city: 'Rome' } })),
      db,
    )
    expect(statements).toEqual(['lock_head', 'read_named', 'store_changes', 'insert_changes'])
  })

  it.each([1, 50])('patches all kinds of fields of %i people with one statement per kind', async count => {
    const organization = await shop()
    await run(
      organization,
      names('p', count).map(name => write('create', name)),
    )
    const { db, statements } = recordStatements(service.db)
    const everything = (index: number): EntityBody => ({
      email_consent: true,
      consents: [{ consent_type_id: 1, channel: 'sms', state: false }],
      attribute_values: { referrer: `new${index}`, friends: [`f${index}`, 'shared'], employer: 'acme', plain: index },
    })
    const outcomes = await run(
      organization,
      names('p', count).map((name, index) => write('patch', name, everything(index))),
      db,
    )
    expect(outcomes.map(resultOf)).toEqual(Array(count).fill('updated'))
    expect(statements).toEqual([
      'lock_head',
      'read_named',
      'read_names_left',
      'read_bearers',
      'read_links',
      'insert_entities',
      'unlink',
      'link',
      'append_consent_history',
      'store_changes',
      'insert_changes',
    ])
    const [counted] = await service.sql<{ placeholders: number }>(
      `select count(*)::integer as placeholders from entities where organization_id = $1 and not active`,
      [organization.id],
    )
    expect(counted).toEqual({ placeholders: 2 * count + 2 })
  })

  it('stores nothing if no write changes anything', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'p')])
    const { db, statements } = recordStatements(service.db)
    expect((await run(organization, [write('patch', 'p', { attribute_values: {} })], db)).map(resultOf)).toEqual([
      'unchanged',
    ])
    expect(statements).toEqual(['lock_head', 'read_named'])
  })
})

describe('writes of one array', () => {
  it('succeed next to refused ones, which create no placeholders', async () => {
    const organization = await shop()
    await run(organization, [write('create', 'a'), write('create', 'b')])
    const outcomes = await run(organization, [
      write('patch', 'a', { first_name: 'A' }),
      write('patch', 'nobody', { attribute_values: { referrer: 'orphan1' } }),
      write('patch', 'b', {
        first_name: 'B',
        consents: [{ consent_type_id: 99, channel: 'email', state: true }],
        attribute_values: { referrer: 'orphan2' },
      }),
      write('create', 'a'),
      write('create', 'c', { attribute_values: { referrer: 'wanted' } }),
    ])
    expect(outcomes.map(resultOf)).toEqual(['updated', 'not_found', 'invalid_parameter', 'duplicate_entry', 'created'])
    const rows = await service.sql<{ external_id: string; active: boolean }>(
      'select external_id, active from entities where organization_id = $1 order by external_id',
      [organization.id],
    )
    expect(rows).toEqual([
      { external_id: 'a', active: true },
      { external_id: 'b', active: true },
      { external_id: 'c', active: true },
      { external_id: 'wanted', active: false },
    ])
  })

  it('take effect in order when they address one row by name or by id', async () => {
    const organization = await shop()
    const [created] = await run(organization, [write('create', 'a')])
    const id = created && 'done' in created ? created.done.id : ''
    const outcomes = await run(organization, [
      write('patch', 'a', { first_name: 'one', attribute_values: { x: 1 } }),
      write('patch', 'a', { last_name: 'two' }, { address: { id } }),
      write('patch', 'a', { first_name: 'three' }),
    ])
    expect(outcomes.map(outcome => 'done' in outcome && outcome.done.version)).toEqual([2, 3, 4])
    const { body } = await organization.send('GET', '/v1/people/a')
    expect(body.data).toMatchObject({ first_name: 'three', last_name: 'two', attribute_values: { x: 1 }, version: 4 })
  })

  it('keep their order when one writes a name that another mentions', async () => {
    const organization = await shop()
    const outcomes = await run(organization, [
      write('create', 'a', { attribute_values: { referrer: 'b' } }),
      write('create', 'b', { attribute_values: { referrer: 'a' } }),
      write('patch', 'b', { external_id: 'c' }),
      write('patch', 'b', { first_name: 'gone' }),
      write('patch', 'c', { first_name: 'here' }),
      write('delete', 'a'),
      write('create', 'a'),
    ])
    expect(outcomes.map(resultOf)).toEqual([
      'created',
      'created',
      'updated',
      'not_found',
      'updated',
      'deleted',
      'created',
    ])
    const { body } = await organization.send('GET', '/v1/people/c')
    expect(body.data).toMatchObject({ first_name: 'here', attribute_values: {} })
  })

  it('create a common link target once', async () => {
    const organization = await shop()
    const outcomes = await run(
      organization,
      names('p', 200).map(name => write('create', name, { attribute_values: { referrer: 'hub' } })),
    )
    expect(new Set(outcomes.map(resultOf))).toEqual(new Set(['created']))
    const births = await service.sql(
      `select 1 from changes where organization_id = $1 and after->>'external_id' = 'hub' and after->>'state' = 'placeholder'`,
      [organization.id],
    )
    expect(births).toHaveLength(1)
  })

  it('succeed next to one that PostgreSQL rejects', async () => {
    const organization = await shop()
    await run(
      organization,
      names('p', 8).map(name => write('create', name)),
    )
    const broken = write('patch', 'p3', { first_name: 'x' }, { request_id: null as never })
    const writes = names('p', 8).map((name, index) =>
      index === 3 ? broken : write('patch', name, { first_name: 'fine' }),
    )
    const outcomes = await run(organization, writes)
    expect(outcomes.map(resultOf)).toEqual(names('p', 8).map((_, index) => (index === 3 ? 'error' : 'updated')))
  })
})

describe('the order of writes in one array', () => {
  it('is kept for writes addressed by name and by internal identifier', async () => {
    const organization = await shop()
    const [made] = await run(organization, [write('create', 'x')])
    const id = made && 'done' in made ? made.done.id : ''
    const byId = { address: { id } }
    const outcomes = await run(organization, [
      write('create', 'linked to'),
      write('patch', '', { attribute_values: { referrer: 'linked to' }, last_name: 'first' }, byId),
      write('patch', '', { last_name: 'second' }, byId),
      write('patch', 'x', { last_name: 'third' }),
      write('patch', '', { last_name: 'fourth' }, byId),
    ])
    expect(outcomes.map(resultOf)).toEqual(['created', 'updated', 'updated', 'updated', 'updated'])
    const { body } = await organization.send('GET', '/v1/people/x')
    expect(body.data).toMatchObject({ last_name: 'fourth', version: 5, attribute_values: { referrer: 'linked to' } })
  })

  it('makes a placeholder visible only to writes after the link that creates it', async () => {
    const organization = await shop()
    const outcomes = await run(organization, [
      write('patch', 'b', { first_name: 'too early' }),
      write('create', 'a', { attribute_values: { referrer: 'b' } }),
      write('patch', 'b', { first_name: 'Bo' }),
      write('put', 'c', { first_name: 'too early' }),
      write('patch', 'b', { attribute_values: { friends: ['c'] } }),
      write('patch', 'c', { first_name: 'Cy' }),
    ])
    expect(outcomes.map(resultOf)).toEqual(['not_found', 'created', 'updated', 'not_found', 'updated', 'updated'])
  })

  it('keeps a missing entity missing for a deferred write, even if a later link creates it', async () => {
    const organization = await shop()
    const outcomes = await run(organization, [
      write('create', 'a'),
      write('patch', 'b', { attribute_values: { referrer: 'a' } }),
      write('create', 'c', { attribute_values: { referrer: 'b' } }),
    ])
    expect(outcomes.map(resultOf)).toEqual(['created', 'not_found', 'created'])
  })

  it('applies a deferred deletion before a later link to its name', async () => {
    const organization = await shop()
    const [made] = await run(organization, [write('create', 'x')])
    const id = made && 'done' in made ? made.done.id : ''
    const outcomes = await run(organization, [
      write('patch', '', { first_name: 'Ada' }, { address: { id } }),
      write('delete', '', {}, { address: { id } }),
      write('create', 'y', { attribute_values: { referrer: 'x' } }),
    ])
    expect(outcomes.map(resultOf)).toEqual(['updated', 'deleted', 'created'])
    expect((await organization.send('GET', '/v1/people/x')).body.data).toMatchObject({ state: 'placeholder' })
  })
})
