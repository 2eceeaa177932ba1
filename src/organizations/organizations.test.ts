import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { type Database, openDatabase, statement } from '../db/db.ts'
import type { Fault } from '../values/errors.ts'
import { createOrganization, ensureDefaultOrganization, findOrganization, listOrganizations } from './organizations.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Database
let other: Database

beforeAll(async () => {
  database = await createTestDatabase()
  db = openDatabase(database.url, { connections: 8, statementTimeoutMs: 10_000 })
  other = openDatabase(database.url, { connections: 8, statementTimeoutMs: 10_000 })
})

afterAll(async () => {
  await Promise.all([db.close(), other.close()])
  await database.drop()
})

const rows = (text: string, values: unknown[] = []) => db.query(statement('', text), values)
const refusalOf = async (key: string) => ((await createOrganization(db, key).catch(error => error)) as Fault).refusal

describe('the organization default', () => {
  it('is created once by servers that start together', async () => {
    const organizations = await Promise.all([db, other, db, other, db].map(ensureDefaultOrganization))
    expect(new Set(organizations.map(({ id }) => id)).size).toBe(1)
    expect(await ensureDefaultOrganization(other)).toEqual(organizations[0])
    expect(await listOrganizations(db)).toEqual([organizations[0]])
  })
})

describe('an organization', () => {
  it('starts with its change head and the consent type marketing', async () => {
    const { id, key, created_at } = await createOrganization(db, 'acme')
    expect(key).toBe('acme')
    expect(created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(await rows('select * from change_heads where organization_id = $1', [id])).toEqual([
      {
        organization_id: id,
        sequence: 0,
        schema_version: 1,
        log_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        latest_at: null,
        max_setback: expect.anything(),
      },
    ])
    const [type, ...others] = await rows('select * from consent_types where organization_id = $1', [id])
    expect(others).toEqual([])
    expect(type).toMatchObject({ id: 1, key: 'marketing', name: 'Marketing', description: null, state: 'active' })
    expect(type).toMatchObject({ mandatory: false, default_state: false, created_at, updated_at: created_at })
    expect(type!.channels).toEqual([
      { channel: 'email', is_default: true, double_opt_in: false },
      { channel: 'sms', is_default: true, double_opt_in: false },
    ])
  })

  it('is found only by its exact key', async () => {
    const organization = await createOrganization(db, 'found')
    expect(await findOrganization(db, 'found')).toEqual(organization)
    for (const key of ['foun', 'Found', 'found ', '']) expect(await findOrganization(db, key)).toBeUndefined()
  })

  it('is created by one of several concurrent requests, and the others get duplicate_entry', async () => {
    const attempts = await Promise.allSettled([db, other, db, other].map(each => createOrganization(each, 'raced')))
    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await refusalOf('raced')).toMatchObject({
      code: 'duplicate_entry',
      status: 409,
      details: [{ path: '/key' }],
    })
    expect(await rows(`select key from organizations where key = 'raced'`)).toHaveLength(1)
  })

  it('is created completely or not at all', async () => {
    await rows(`insert into consent_types select organization_id + 1000000, id, key, name, description, state, mandatory,
      default_state, channels, created_at, updated_at, version from consent_types limit 1`)
    await rows(`alter table organizations alter column id restart with ${await takenId()}`)
    await expect(createOrganization(db, 'half')).rejects.toThrow('consent_types')
    expect(await findOrganization(db, 'half')).toBeUndefined()
  })

  it('has a key of 1 to 63 characters of a-z, 0-9, _ and -, beginning with a letter, which is not trimmed', async () => {
    expect(await createOrganization(db, 'a')).toMatchObject({ key: 'a' })
    expect(await createOrganization(db, `a${'-'.repeat(31)}${'_'.repeat(31)}`)).toBeDefined()
    for (const key of ['', ' a', 'a ', 'a\n', 'A', '1a', '-a', 'ä', 'a.b', 'a/b', `a${'b'.repeat(63)}`])
      expect(await refusalOf(key)).toMatchObject({
        code: 'invalid_parameter',
        status: 400,
        details: [{ path: '/key' }],
      })
  })
})

/** An organization id that already has a consent type 1. */
async function takenId(): Promise<number> {
  const [row] = await rows('select max(organization_id) as id from consent_types')
  return row!.id as number
}
