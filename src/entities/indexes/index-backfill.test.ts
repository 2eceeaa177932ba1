import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { someRuns } from '../../../test/support/runs.ts'
import { type Service, useOwnService } from '../../../test/support/service.ts'
import { contextOf } from '../../db/context.ts'
import type { Database } from '../../db/db.ts'
import { reloadDefinitions } from '../../organizations/definitions.ts'
import { backfillIndexes } from './index-backfill.ts'
import { termsOf } from './index-keys.ts'

const service = useOwnService()

type Organization = Awaited<ReturnType<Service['organization']>>

async function createPeople(count: number): Promise<Organization> {
  const organization = await service.organization()
  const operations = Array.from({ length: count }, (_, index) => ({
    op: 'create',
    body: { external_id: `p${index}`, attribute_values: { city: `city ${index % 7}`, other: index } },
  }))
  await organization.send('POST', '/v1/people/batch', { operations })
  return organization
}

async function declare({ send }: Organization, key = 'city', rest: object = { indexed: true }) {
  const reply = await send('POST', '/v1/schema/attributes', { key, owner: 'people', type: 'text', ...rest })
  return reply.body.data
}

const readAttribute = async ({ send }: Organization, id: number) =>
  (await send('GET', `/v1/schema/attributes/${id}`)).body.data

async function terms(organization: Organization): Promise<string[]> {
  const rows = await service.sql<{ term: string }>(
    "select index_id || ' ' || value || ' ' || entity_id as term from terms where organization_id = $1 order by 1",
    [organization.id],
  )
  return rows.map(({ term }) => term)
}

/** The terms that the stored values require. */
async function expected({ id }: Organization): Promise<string[]> {
  const { attributes } = await reloadDefinitions(contextOf(service.db, id))
  const rows = await service.sql<{ id: string; attributes: Record<string, unknown> }>(
    'select id, attributes from entities where organization_id = $1 and stack_id = 0',
    [id],
  )
  return attributes
    .filter(({ index }) => index)
    .flatMap(attribute =>
      rows.flatMap(row =>
        [...termsOf(attribute, row.attributes[attribute.key])].map(term => `${attribute.index!.id} ${term} ${row.id}`),
      ),
    )
    .sort()
}

const backfillOptions = { entitiesPerBatch: 10 }

describe('an attribute that becomes indexed after values were stored', () => {
  it('reports the progress of its index until it is ready', async () => {
    const organization = await createPeople(25)
    const attribute = await declare(organization)
    expect(attribute).toMatchObject({ indexed: true, index_state: { state: 'filling', indexed: 0 } })
    const stop = new AbortController()
    const abortingDb = {
      ...service.db,
      transaction: (async (work, options) => {
        const result = await service.db.transaction(work, options)
        stop.abort()
        return result
      }) as typeof service.db.transaction,
    }
    await backfillIndexes(abortingDb, { ...backfillOptions, signal: stop.signal })
    expect((await readAttribute(organization, attribute.id)).index_state).toEqual({
      state: 'filling',
      indexed: 10,
      total: 25,
    })
    await backfillIndexes(service.db, backfillOptions)
    expect((await readAttribute(organization, attribute.id)).index_state).toEqual({
      state: 'ready',
      indexed: 25,
      total: 25,
    })
    expect(await terms(organization)).toEqual(await expected(organization))
    expect(await terms(organization)).toHaveLength(25)
  })

  it('has exactly the stored values in its index after concurrent writes', async () => {
    const value = fc.constantFrom('Rome', 'Oslo', null)
    const steps = fc.array(
      fc.oneof(
        fc.record({ patch: fc.integer({ min: 0, max: 24 }), city: value }),
        fc.record({ delete: fc.integer({ min: 0, max: 24 }) }),
        fc.record({ create: fc.constant(true), city: value }),
      ),
      { minLength: 10, maxLength: 25 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async writes => {
        const organization = await createPeople(25)
        const { send } = organization
        const writing = Promise.all(
          writes.map(write => {
            if ('create' in write) return send('POST', '/v1/people', { attribute_values: { city: write.city } })
            if ('delete' in write) return send('DELETE', `/v1/people/p${write.delete}`)
            return send('PATCH', `/v1/people/p${write.patch}`, { attribute_values: { city: write.city } })
          }),
        )
        await declare(organization)
        // Two processes backfill at the same time.
        await Promise.all([
          backfillIndexes(service.db, { entitiesPerBatch: 3 }),
          backfillIndexes(service.db, { entitiesPerBatch: 3 }),
        ])
        await writing
        await backfillIndexes(service.db, backfillOptions)
        expect(await terms(organization)).toEqual(await expected(organization))
      }),
      someRuns(10),
    )
  })

  it('updates its index in the transaction of every later write', async () => {
    const organization = await createPeople(3)
    await declare(organization)
    await declare(organization, 'tags', { indexed: true, cardinality: 'many' })
    await backfillIndexes(service.db)
    const { send } = organization
    await send('PATCH', '/v1/people/p0', { attribute_values: { tags: ['a', 'b', 'a'], city: 'Rome' } })
    await send('PUT', '/v1/people/p1', { attribute_values: { tags: ['c'] } })
    await send('POST', '/v1/people/upsert', { external_id: 'p9', attribute_values: { city: 'x'.repeat(60_000) } })
    expect(await terms(organization)).toEqual(await expected(organization))
    await send('PATCH', '/v1/people/p0', { attribute_values: { tags: ['b', 'd'] } })
    await send('DELETE', '/v1/people/p9')
    await send('DELETE', '/v1/people/p2')
    expect(await terms(organization)).toEqual(await expected(organization))
    expect(await terms(organization)).toHaveLength(4)
  })

  it('loses its index when archived or no longer indexed, and gets a new one when reactivated', async () => {
    const organization = await createPeople(12)
    const { id } = await declare(organization)
    const { send } = organization
    await backfillIndexes(service.db)
    await send('PATCH', `/v1/schema/attributes/${id}`, { state: 'archived' })
    await send('PATCH', '/v1/people/p0', { attribute_values: { city: 'elsewhere' } })
    expect((await readAttribute(organization, id)).index_state).toBeNull()
    await send('PATCH', `/v1/schema/attributes/${id}`, { state: 'active' })
    expect((await readAttribute(organization, id)).index_state).toMatchObject({ state: 'filling' })
    await backfillIndexes(service.db)
    expect((await readAttribute(organization, id)).index_state).toMatchObject({ state: 'ready' })
    expect(await terms(organization)).toEqual(await expected(organization))
    await send('PATCH', `/v1/schema/attributes/${id}`, { indexed: false })
    await backfillIndexes(service.db)
    expect(await terms(organization)).toEqual([])
    expect(await service.sql('select * from fills where organization_id = $1', [organization.id])).toEqual([])
    expect((await readAttribute(organization, id)).index_state).toBeNull()
  })
})

it('costs one statement while no definitions change', async () => {
  const organization = await createPeople(3)
  await declare(organization)
  const statements: string[] = []
  const counted: Database = {
    ...service.db,
    query: (statement, values, signal) => {
      statements.push(statement.name)
      return service.db.query(statement, values, signal)
    },
  }
  await backfillIndexes(counted)
  // The index that was filled is found ready.
  await backfillIndexes(counted)
  statements.length = 0
  expect(await backfillIndexes(counted)).toBe(0)
  expect(statements).toEqual(['digest_versions'])
  await declare(organization, 'other')
  expect(await backfillIndexes(counted)).toBe(3)
})

it('performs a HOT update for a PATCH of attributes that are not indexed', async () => {
  const organization = await createPeople(1)
  await declare(organization)
  await backfillIndexes(service.db)
  // The first write finds the outdated schema version and is decided again.
  await organization.send('PATCH', '/v1/people/p0', { first_name: 'n' })
  const before = await countUpdates()
  for (let index = 0; index < 5; index += 1)
    await organization.send('PATCH', '/v1/people/p0', {
      first_name: `n${index}`,
      attribute_values: { other: -index - 1 },
    })
  const after = await countUpdates()
  expect({ all: after.all - before.all, hot: after.hot - before.hot }).toEqual({ all: 5, hot: 5 })
})

/** Returns the update counts. A connection reports its counts when it ends, so all others are terminated first. */
async function countUpdates() {
  const others = `select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`
  await service.sql(others)
  await service.sql('select pg_stat_force_next_flush()')
  const [row] = await service.sql<{ all: number; hot: number }>(
    `select n_tup_upd as all, n_tup_hot_upd as hot from pg_stat_user_tables where relname = 'entities'`,
  )
  return row!
}
