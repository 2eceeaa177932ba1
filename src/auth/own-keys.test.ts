import { describe, expect, it, vi } from 'vitest'
import { authenticate, encode, invalidToken, now, signOwn, useGate, validClaims } from '../../test/support/gate.ts'
import { loadConfig } from '../config.ts'
import type { Database } from '../db/db.ts'
import { createAuthenticator } from './authenticator.ts'
import { revokeKey, rotateKeys, takeSigningKey } from './keys.ts'

const gate = useGate()

/** A token as good as any, under a kid of the right form that nobody has. */
const unknown = async (letter: string) => {
  const [, payload, signature] = (await signOwn(gate, validClaims)).split('.')
  return `${encode({ alg: 'ES256', kid: letter.repeat(43) })}.${payload}.${signature}`
}

const tokenOfNewKey = async () => {
  await rotateKeys(gate.db)
  const signing = await takeSigningKey(gate.db, now + 3_600)
  const kid = signing.kid
  return signOwn({ ...gate, signing, kid }, { ...validClaims, jti: kid })
}

const ask = (token: string, to = gate.authenticator) => authenticate(to, `Bearer ${token}`)

describe('a key that the process does not know yet', () => {
  it('is looked up once for twenty who come at once, and its tokens are taken', async () => {
    const authenticator = gate.open({})
    const token = await tokenOfNewKey()
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(token, authenticator)))
    for (const answer of answers) expect(answer).toMatchObject({ subject: 'attacker' })
    // One for the key, and one each for the organization, which is not yet remembered.
    expect(gate.queries).toBe(21)
  })

  it('is not refused because somebody has asked for others just before: it waits for the next look-up', async () => {
    const authenticator = gate.open({})
    const tokens = await Promise.all(['a', 'b', 'c'].map(unknown))
    const attacks = await Promise.all(tokens.map(token => ask(token, authenticator)))
    for (const refusal of attacks) expect(refusal).toMatchObject(invalidToken)
    expect(gate.queries).toBe(1)
    const token = await tokenOfNewKey()
    const more = Array.from({ length: 50 }, async (_, index) =>
      ask(await unknown(String.fromCharCode(65 + (index % 26))), authenticator),
    )
    expect(await ask(token, authenticator)).toMatchObject({ subject: 'attacker' })
    for (const refusal of await Promise.all(more)) expect(refusal).toMatchObject(invalidToken)
    // The clock stands still: all of them came in one second, and shared its one look-up; then the organization.
    expect(gate.queries).toBeLessThanOrEqual(4)
  })

  it('is refused to the byte as a wrong signature is', async () => {
    const wrong = (await signOwn(gate, validClaims)).replace(/.{20}$/, 'A'.repeat(20))
    expect(await ask(await unknown('u'), gate.open({}))).toEqual(await ask(wrong))
  })

  it('is not looked up under a kid that cannot be one of ours, nor for another algorithm', async () => {
    const [, payload, signature] = (await signOwn(gate, validClaims)).split('.')
    for (const header of [
      { alg: 'ES256', kid: 'a'.repeat(42) },
      { alg: 'ES256', kid: 'a'.repeat(44) },
      { alg: 'ES256', kid: `${'a'.repeat(42)}'` },
      { alg: 'ES256', kid: `${'a'.repeat(43)}\n` },
      { alg: 'RS256', kid: 'a'.repeat(43) },
      { alg: 'HS256', kid: 'a'.repeat(43) },
    ])
      expect(await ask(`${encode(header)}.${payload}.${signature}`)).toMatchObject(invalidToken)
    expect(gate.queries).toBe(0)
  })

  it('cannot be told from a wrong one while the database is away: that is a fault, and no refusal', async () => {
    const away = (async () => {
      throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' })
    }) as Database['query']
    const { authenticate } = createAuthenticator({
      db: { ...gate.db, query: away },
      keys: gate.keys,
      config: loadConfig({}),
      nowMs: () => gate.nowMs,
    })
    await expect(authenticate([`Bearer ${await unknown('x')}`])).rejects.toThrow('away')
  })
})

describe('a remembered token', () => {
  it('is asked about behind the scenes after five seconds, and dies with its key after ten', async () => {
    const authenticator = gate.open({})
    const token = await tokenOfNewKey()
    expect(await ask(token, authenticator)).toMatchObject({ subject: 'attacker' })
    const { kid } = JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())
    await rotateKeys(gate.db)
    await revokeKey(gate.db, kid)
    gate.queries = 0
    gate.nowMs += 4_999
    expect(authenticator.authenticate([`Bearer ${token}`])).toMatchObject({ subject: 'attacker' })
    expect(gate.queries).toBe(0)
    gate.nowMs += 1
    expect(authenticator.authenticate([`Bearer ${token}`])).toMatchObject({ subject: 'attacker' })
    await vi.waitFor(() => expect(gate.queries).toBe(2))
    gate.nowMs += 5_000
    expect(await ask(token, authenticator)).toMatchObject(invalidToken)
  })

  it('dies with its organization', async () => {
    const authenticator = gate.open({})
    const db = gate.db
    await db.query({ name: '', text: `insert into organizations (key) values ('mortal')` }, [])
    const token = await signOwn(gate, { ...validClaims, org: 'mortal' })
    expect(await ask(token, authenticator)).toMatchObject({ organization: { key: 'mortal' } })
    await db.query({ name: '', text: `delete from organizations where key = 'mortal'` }, [])
    gate.nowMs += 10_000
    expect(await ask(token, authenticator)).toMatchObject(invalidToken)
  })

  it('lives on through a database that is away for less than ten seconds', async () => {
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

it('keys are those of the database, whoever asks for them', async () => {
  const kids = async (to = gate.authenticator) => (await to.jwks()).keys.map(({ kid }) => kid)
  // One that has signed nothing would go when another takes its place.
  await takeSigningKey(gate.db, Date.now() / 1_000 + 60)
  gate.nowMs += 1_000
  const before = await kids()
  const made = await rotateKeys(gate.db)
  gate.nowMs += 1_000
  expect(await kids()).toEqual([made, ...before])
  gate.queries = 0
  await Promise.all(Array.from({ length: 20 }, () => kids()))
  expect(gate.queries).toBe(0)
})
