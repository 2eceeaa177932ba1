import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../../../test/support/database.ts'
import { type Database, openDatabase, statement } from '../../db/db.ts'
import { ensureDefaultOrganization } from '../../organizations/organizations.ts'
import { loadConfig } from '../../process/config.ts'
import { Fault } from '../../values/errors.ts'
import { createAuthenticator } from '../authenticator.ts'
import { issueToken } from '../token.ts'
import { listKeys, loadOrCreateKeys, revokeKey, rotateKeys } from './keys.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
const servers: Database[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  for (let index = 0; index < 4; index++)
    servers.push(openDatabase(database.url, { connections: 2, statementTimeoutMs: 10_000 }))
})

afterAll(async () => {
  await Promise.all(servers.map(db => db.close()))
  await database.drop()
})

const request = { organizationKey: 'default', subject: 'tests', scope: 'people:read', ttlSeconds: 60 }

/** An authenticator of a server, and its clock. */
async function open(db: Database, clock = { nowMs: Date.now() }) {
  const authenticator = createAuthenticator({
    db,
    keys: await loadOrCreateKeys(db),
    config: loadConfig({}),
    nowMs: () => clock.nowMs,
  })
  const presentToken = async (token: string) => authenticator.authenticate([`Bearer ${token}`])
  return { ...authenticator, clock, presentToken }
}

const expiryOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()).exp * 1_000
const kidOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()).kid as string
const kids = async (db: Database) => (await listKeys(db)).map(({ kid }) => kid)
const sql = (text: string, values: unknown[] = []) => servers[0]!.query(statement('', text), values)

describe('the signing key', () => {
  it('is shared by servers that start together on an empty database, and each accepts the tokens of the others', async () => {
    await Promise.all(servers.map(ensureDefaultOrganization))
    const opened = await Promise.all(servers.map(db => open(db)))
    expect(await sql('select kid from signing_keys')).toHaveLength(1)
    const tokens = await Promise.all(servers.map(db => issueToken(db, request)))
    for (const { presentToken } of opened)
      for (const token of tokens) expect(await presentToken(token)).toMatchObject({ subject: 'tests' })
  })

  it('is the same after a restart', async () => {
    const [before, after] = [await loadOrCreateKeys(servers[0]!), await loadOrCreateKeys(servers[1]!)]
    expect(after.publicJwks).toEqual(before.publicJwks)
    expect(await sql('select kid from signing_keys')).toHaveLength(1)
  })

  it('is published without its private half', async () => {
    const text = { x: expect.any(String), y: expect.any(String), kid: expect.any(String) }
    expect(await (await open(servers[0]!)).jwks()).toEqual({
      keys: [{ kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig', ...text }],
    })
  })

  it('prevents the start if it is too weak or of a type that kith does not create', async () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 1_024 })
    const jwk = JSON.stringify(publicKey.export({ format: 'jwk' }))
    const verifying = `values ('weak', 'RS256', $1, now() + interval '1 day')`
    await sql(`insert into signing_keys (kid, algorithm, public_jwk, vouches_until) ${verifying}`, [jwk])
    await expect(loadOrCreateKeys(servers[0]!)).rejects.toThrow('weak')
    await sql(`delete from signing_keys where kid = 'weak'`)
  })
})

describe('rotation', () => {
  it('invalidates no token on any server, whatever its lifetime, and the new key signs from then on', async () => {
    const opened = await Promise.all(servers.map(db => open(db)))
    const tokens = [await issueToken(servers[0]!, request)]
    for (const ttlSeconds of [60, 3_600, 86_400, 99 * 366 * 86_400])
      for (const [index, db] of servers.entries()) {
        const kid = await rotateKeys(db)
        // Another server signs the token, so each server also receives tokens with keys that it has not loaded yet.
        const token = await issueToken(servers[(index + 1) % 4]!, { ...request, ttlSeconds })
        expect(kidOf(token)).toBe(kid)
        tokens.push(token)
        for (const { presentToken, clock } of opened) {
          clock.nowMs += 1_000
          expect(await presentToken(token)).toMatchObject({ subject: 'tests' })
        }
      }
    for (const { presentToken, clock } of [...opened, ...(await Promise.all(servers.map(db => open(db))))]) {
      clock.nowMs = Date.now()
      for (const token of tokens) expect(await presentToken(token)).toMatchObject({ subject: 'tests' })
    }
  }, 60_000)

  it('leaves one key with a private half, and all valid keys stay published', async () => {
    const [signing, ...older] = await listKeys(servers[0]!)
    expect(signing!.state).toBe('signs')
    expect(older.length).toBeGreaterThan(10)
    expect(older.every(({ state }) => state !== 'signs')).toBe(true)
    const halves = await sql('select kid from signing_keys where private_jwk is not null')
    expect(halves).toEqual([{ kid: signing!.kid }])
    const { keys } = await (await open(servers[0]!)).jwks()
    expect(keys.map(({ kid }) => kid)).toEqual([signing!.kid, ...older.map(({ kid }) => kid)])
  })

  it('removes a key after its last token has expired and not before', async () => {
    const { jwks, presentToken, clock } = await open(servers[0]!)
    const token = await issueToken(servers[0]!, request)
    const kid = kidOf(token)
    const [{ vouches_until }] = (await sql('select vouches_until from signing_keys where kid = $1', [kid])) as [
      { vouches_until: string },
    ]
    expect(Date.parse(vouches_until)).toBeGreaterThan(expiryOf(token))
    await rotateKeys(servers[1]!)
    await sql(`update signing_keys set vouches_until = now() + interval '1 minute' where kid = $1`, [kid])
    await rotateKeys(servers[1]!)
    expect(await kids(servers[0]!)).toContain(kid)
    await sql(`update signing_keys set vouches_until = now() where kid = $1`, [kid])
    clock.nowMs += 1_000
    expect((await jwks()).keys.map(each => each.kid)).not.toContain(kid)
    await expect(presentToken(token)).rejects.toThrow('not valid')
    await rotateKeys(servers[1]!)
    expect(await kids(servers[0]!)).not.toContain(kid)
  })

  it('never creates a kid that a command would parse as an option', async () => {
    // One thumbprint in 64 begins with a hyphen.
    const created = []
    for (let index = 0; index < 200; index++) created.push(await rotateKeys(servers[index % 4]!))
    expect(created.filter(kid => !/^\w[\w-]{42}$/.test(kid))).toEqual([])
  })

  it('by several servers at once leaves one signing key, and tokens of all keys stay valid', async () => {
    const issued = servers.flatMap(db => [rotateKeys(db), ...Array.from({ length: 5 }, () => issueToken(db, request))])
    const tokens = (await Promise.all(issued)).filter(text => text.includes('.'))
    expect(tokens).toHaveLength(20)
    expect((await listKeys(servers[0]!)).filter(({ state }) => state === 'signs')).toHaveLength(1)
    const { presentToken } = await open(servers[0]!)
    for (const token of tokens) expect(await presentToken(token)).toMatchObject({ subject: 'tests' })
  })

  it('stores the end of a key once a day and not for every token', async () => {
    const kid = await rotateKeys(servers[0]!)
    const ends = new Set<unknown>()
    for (let index = 0; index < 5; index++) {
      await issueToken(servers[0]!, { ...request, ttlSeconds: 60 + index })
      ends.add((await sql('select vouches_until::text from signing_keys where kid = $1', [kid]))[0]!.vouches_until)
    }
    expect(ends.size).toBe(1)
  })
})

describe('a revoked key', () => {
  it('invalidates its tokens within ten seconds on every server, also cached ones', async () => {
    const token = await issueToken(servers[0]!, request)
    const opened = await Promise.all(servers.map(db => open(db)))
    for (const { presentToken } of opened) expect(await presentToken(token)).toMatchObject({ subject: 'tests' })
    await rotateKeys(servers[0]!)
    await revokeKey(servers[0]!, kidOf(token))
    for (const { presentToken, clock } of opened) {
      clock.nowMs += 10_000
      await expect(presentToken(token)).rejects.toThrow('not valid')
    }
  })

  it('cannot be the signing key', async () => {
    const { kid } = (await listKeys(servers[0]!))[0]!
    for (const each of [kid, 'nothing']) await expect(revokeKey(servers[0]!, each)).rejects.toThrow('keys rotate')
    expect((await listKeys(servers[0]!))[0]!.kid).toBe(kid)
  })
})

describe('a request for a token', () => {
  it.each([
    ['without a scope', { scope: ' ' }, '/scope'],
    ['with an unknown scope', { scope: 'people:read people:all' }, '/scope'],
    ['with scopes separated by tabs', { scope: 'people:read\tpeople:write' }, '/scope'],
    ['without a subject', { subject: '' }, '/subject'],
    ['with a line feed in its subject', { subject: 'a\nb' }, '/subject'],
    ['for 0 seconds', { ttlSeconds: 0 }, '/ttl_seconds'],
    ['for half a second', { ttlSeconds: 0.5 }, '/ttl_seconds'],
    ['for an infinite time', { ttlSeconds: Number.POSITIVE_INFINITY }, '/ttl_seconds'],
  ])('is refused %s', async (_, change, path) => {
    const error = await issueToken(servers[0]!, { ...request, ...change }).catch(caught => caught)
    expect(error).toBeInstanceOf(Fault)
    expect((error as Fault).refusal).toMatchObject({ code: 'invalid_parameter', details: [{ path }] })
  })
})
