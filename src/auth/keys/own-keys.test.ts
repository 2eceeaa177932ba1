import { describe, expect, it, vi } from 'vitest'
import { authenticate, encode, invalidToken, now, signOwn, useGate, validClaims } from '../../../test/support/gate.ts'
import type { Database } from '../../db/db.ts'
import { findOrganizationSql } from '../../organizations/sql.ts'
import { loadConfig } from '../../process/config.ts'
import { createAuthenticator } from '../authenticator.ts'
import { readVerifyingKeysSql } from '../sql.ts'
import { revokeKey, rotateKeys, takeSigningKey } from './keys.ts'

const gate = useGate()

/** A token with valid claims and a kid that has the right form but does not exist. */
const unknownKidToken = async (letter: string) => {
  const [, payload, signature] = (await signOwn(gate, validClaims)).split('.')
  return `${encode({ alg: 'ES256', kid: letter.repeat(43) })}.${payload}.${signature}`
}

const tokenOfNewKey = async () => {
  await rotateKeys(gate.db)
  const signing = await takeSigningKey(gate.db, now + 3_600)
  const kid = signing.kid
  return signOwn({ ...gate, signing, kid }, { ...validClaims, jti: kid })
}

const presentToken = (token: string, to = gate.authenticator) => authenticate(to, `Bearer ${token}`)

describe('a key that the process has not loaded yet', () => {
  it('is looked up once for twenty concurrent requests, and its tokens are accepted', async () => {
    const authenticator = gate.open({})
    const token = await tokenOfNewKey()
    const answers = await Promise.all(Array.from({ length: 20 }, () => presentToken(token, authenticator)))
    for (const answer of answers) expect(answer).toMatchObject({ subject: 'attacker' })
    // A request with a late signature check may find the organization in the cache.
    const names = gate.queries.filter(name => name !== findOrganizationSql.name)
    expect(names).toEqual([readVerifyingKeysSql.name])
  })

  it('waits for the next look-up if others were looked up just before, and is then accepted', async () => {
    const authenticator = gate.open({})
    const tokens = await Promise.all(['a', 'b', 'c'].map(unknownKidToken))
    const attacks = await Promise.all(tokens.map(token => presentToken(token, authenticator)))
    for (const refusal of attacks) expect(refusal).toMatchObject(invalidToken)
    expect(gate.queries).toHaveLength(1)
    const token = await tokenOfNewKey()
    const more = Array.from({ length: 50 }, async (_, index) =>
      presentToken(await unknownKidToken(String.fromCharCode(65 + (index % 26))), authenticator),
    )
    expect(await presentToken(token, authenticator)).toMatchObject({ subject: 'attacker' })
    for (const refusal of await Promise.all(more)) expect(refusal).toMatchObject(invalidToken)
    // The clock is frozen, so all requests share the look-ups of one second. One more query reads the organization.
    expect(gate.queries.length).toBeLessThanOrEqual(4)
  })

  it('that does not exist gets the same response as a wrong signature', async () => {
    const wrong = (await signOwn(gate, validClaims)).replace(/.{20}$/, 'A'.repeat(20))
    expect(await presentToken(await unknownKidToken('u'), gate.open({}))).toEqual(await presentToken(wrong))
  })

  it('is not looked up for a malformed kid or another algorithm', async () => {
    const [, payload, signature] = (await signOwn(gate, validClaims)).split('.')
    for (const header of [
      { alg: 'ES256', kid: 'a'.repeat(42) },
      { alg: 'ES256', kid: 'a'.repeat(44) },
      { alg: 'ES256', kid: `${'a'.repeat(42)}'` },
      { alg: 'ES256', kid: `${'a'.repeat(43)}\n` },
      { alg: 'RS256', kid: 'a'.repeat(43) },
      { alg: 'HS256', kid: 'a'.repeat(43) },
    ])
      expect(await presentToken(`${encode(header)}.${payload}.${signature}`)).toMatchObject(invalidToken)
    expect(gate.queries).toEqual([])
  })

  it('causes an error, not a rejection, while the database is unavailable', async () => {
    const away = (async () => {
      throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' })
    }) as Database['query']
    const { authenticate } = createAuthenticator({
      db: { ...gate.db, query: away },
      keys: gate.keys,
      config: loadConfig({}),
      nowMs: () => gate.nowMs,
    })
    await expect(authenticate([`Bearer ${await unknownKidToken('x')}`])).rejects.toThrow('away')
  })
})

describe('a cached token', () => {
  it('is revalidated in the background after five seconds, and rejected ten seconds after its key is revoked', async () => {
    const authenticator = gate.open({})
    const token = await tokenOfNewKey()
    expect(await presentToken(token, authenticator)).toMatchObject({ subject: 'attacker' })
    const { kid } = JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())
    await rotateKeys(gate.db)
    await revokeKey(gate.db, kid)
    gate.queries = []
    gate.nowMs += 4_999
    expect(authenticator.authenticate([`Bearer ${token}`])).toMatchObject({ subject: 'attacker' })
    expect(gate.queries).toEqual([])
    gate.nowMs += 1
    expect(authenticator.authenticate([`Bearer ${token}`])).toMatchObject({ subject: 'attacker' })
    await vi.waitFor(() => expect(gate.queries).toHaveLength(2))
    gate.nowMs += 5_000
    expect(await presentToken(token, authenticator)).toMatchObject(invalidToken)
  })

  it('is rejected after its organization is deleted', async () => {
    const authenticator = gate.open({})
    const db = gate.db
    await db.query({ name: '', text: `insert into organizations (key) values ('mortal')` }, [])
    const token = await signOwn(gate, { ...validClaims, org: 'mortal' })
    expect(await presentToken(token, authenticator)).toMatchObject({ organization: { key: 'mortal' } })
    await db.query({ name: '', text: `delete from organizations where key = 'mortal'` }, [])
    gate.nowMs += 10_000
    expect(await presentToken(token, authenticator)).toMatchObject(invalidToken)
  })

  it('stays valid while the database is unavailable for less than ten seconds', async () => {
    let away = false
    const query: Database['query'] = (...given) => (away ? Promise.reject(new Error('away')) : gate.db.query(...given))
    const { authenticate } = createAuthenticator({
      db: { ...gate.db, query },
      keys: gate.keys,
      config: loadConfig({}),
      nowMs: () => gate.nowMs,
    })
    const headers = [`Bearer ${await signOwn(gate, validClaims)}`]
    const caller = await authenticate(headers)
    away = true
    for (let index = 0; index < 9; index++) {
      gate.nowMs += 1_000
      expect(authenticate(headers)).toBe(caller)
      await new Promise(setImmediate)
    }
    gate.nowMs += 1_000
    await expect(authenticate(headers)).rejects.toThrow('away')
  })
})

it('the published keys are those of the database, with at most one query a second', async () => {
  const kids = async (to = gate.authenticator) => (await to.jwks()).keys.map(({ kid }) => kid)
  // A rotation would delete a key without signatures.
  await takeSigningKey(gate.db, Date.now() / 1_000 + 60)
  gate.nowMs += 1_000
  const before = await kids()
  const newKid = await rotateKeys(gate.db)
  gate.nowMs += 1_000
  expect(await kids()).toEqual([newKid, ...before])
  gate.queries = []
  await Promise.all(Array.from({ length: 20 }, () => kids()))
  expect(gate.queries).toEqual([])
})
