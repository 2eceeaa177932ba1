import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { loadConfig } from '../config.ts'
import { type Database, openDatabase, statement } from '../db/db.ts'
import { Fault } from '../errors.ts'
import { ensureDefaultOrganization } from '../organizations/directory.ts'
import { createAuthenticator } from './authenticator.ts'
import { loadOrCreateKeys } from './keys.ts'
import { issueToken } from './token.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
const servers: Database[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  for (let index = 0; index < 4; index++)
    servers.push(openDatabase(database.url, { connections: 2, statement_timeout_ms: 10_000 }))
})

afterAll(async () => {
  await Promise.all(servers.map(db => db.close()))
  await database.drop()
})

const request = { organization_key: 'default', subject: 'tests', scope: 'people:read', ttl_seconds: 60 }

describe('the signing key', () => {
  it('is one for servers that start together on an empty database, and each accepts the tokens of the others', async () => {
    await Promise.all(servers.map(ensureDefaultOrganization))
    const keys = await Promise.all(servers.map(loadOrCreateKeys))
    expect(await servers[0]!.query(statement('count_keys', 'select kid from signing_keys'), [])).toHaveLength(1)
    const tokens = await Promise.all(keys.map(each => issueToken(each, request)))
    for (const [index, db] of servers.entries()) {
      const { authenticate } = createAuthenticator({ db, keys: keys[index]!, config: loadConfig({}) })
      for (const token of tokens) expect(await authenticate([`Bearer ${token}`])).toMatchObject({ subject: 'tests' })
    }
  })

  it('is the same after a restart', async () => {
    const [before, after] = [await loadOrCreateKeys(servers[0]!), await loadOrCreateKeys(servers[1]!)]
    expect(after.signing.kid).toBe(before.signing.kid)
    expect(after.public_jwks).toEqual(before.public_jwks)
  })

  it('shows its public half alone', async () => {
    const db = servers[0]!
    const authenticator = createAuthenticator({ db, keys: await loadOrCreateKeys(db), config: loadConfig({}) })
    const text = { x: expect.any(String), y: expect.any(String), kid: expect.any(String) }
    expect(authenticator.jwks()).toEqual({ keys: [{ kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig', ...text }] })
  })

  it('that is older still verifies, and the newest signs', async () => {
    const db = servers[0]!
    const older = await loadOrCreateKeys(db)
    const token = await issueToken(older, request)
    await db.query(statement('age_keys', `update signing_keys set created_at = now() - interval '1 hour'`), [])
    const other = await createTestDatabase()
    const elsewhere = openDatabase(other.url, { connections: 1, statement_timeout_ms: 10_000 })
    await loadOrCreateKeys(elsewhere)
    const [row] = await elsewhere.query(statement('read_key', 'select * from signing_keys'), [])
    await elsewhere.close()
    await other.drop()
    const insert = statement(
      'copy_key',
      'insert into signing_keys select * from json_populate_record(null::signing_keys, $1)',
    )
    await db.query(insert, [JSON.stringify(row)])
    const keys = await loadOrCreateKeys(db)
    expect(keys.signing.kid).toBe(row!.kid)
    const { authenticate } = createAuthenticator({ db, keys, config: loadConfig({}) })
    for (const each of [token, await issueToken(keys, request)])
      expect(await authenticate([`Bearer ${each}`])).toMatchObject({ subject: 'tests' })
  })
})

describe('a token is not issued', () => {
  it.each([
    ['without a scope', { scope: ' ' }, '/scope'],
    ['with an unknown scope', { scope: 'people:read people:all' }, '/scope'],
    ['with scopes between tabs', { scope: 'people:read\tpeople:write' }, '/scope'],
    ['without a subject', { subject: '' }, '/subject'],
    ['with a line end in its subject', { subject: 'a\nb' }, '/subject'],
    ['for no time', { ttl_seconds: 0 }, '/ttl_seconds'],
    ['for part of a second', { ttl_seconds: 0.5 }, '/ttl_seconds'],
    ['for ever', { ttl_seconds: Number.POSITIVE_INFINITY }, '/ttl_seconds'],
  ])('%s', async (_, change, path) => {
    const error = await issueToken(await loadOrCreateKeys(servers[0]!), { ...request, ...change }).catch(
      caught => caught,
    )
    expect(error).toBeInstanceOf(Fault)
    expect((error as Fault).refusal).toMatchObject({ word: 'invalid_parameter', details: [{ path }] })
  })
})
