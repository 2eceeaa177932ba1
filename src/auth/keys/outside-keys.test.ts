import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { authenticate, encode, invalidToken, now, signOwn, useGate, validClaims } from '../../../test/support/gate.ts'
import { loadConfig } from '../../process/config.ts'
import { type Authenticator, createAuthenticator } from '../authenticator.ts'

const gate = useGate()

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const ed = generateKeyPairSync('ed25519')
const weak = generateKeyPairSync('rsa', { modulusLength: 2_047 })

const jwkOf = (key: KeyObject, more: object) => ({ ...key.export({ format: 'jwk' }), use: 'sig', ...more })

/** A valid key set of the issuer. */
const validSet = [
  jwkOf(ec.publicKey, { kid: 'ec', alg: 'ES256' }),
  jwkOf(rsa.publicKey, { kid: 'rsa' }),
  jwkOf(ed.publicKey, { kid: 'ed', key_ops: ['verify'] }),
]

let address: string
let fetches = 0
let respond: RequestListener
const server = createServer((request, response) => {
  fetches++
  respond(request, response)
})
const sendSet = (keys: unknown[]) => (_: unknown, response: ServerResponse) => response.end(JSON.stringify({ keys }))

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => server.close())

let authenticator: Authenticator
let problems: string[]
beforeEach(() => {
  fetches = 0
  problems = []
  respond = sendSet(validSet)
  authenticator = open(`${address}/jwks.json`)
})
afterEach(() => server.closeAllConnections())

function open(jwksUrl: string): Authenticator {
  const config = loadConfig({ AUTH_ISSUER: 'https://issuer.example', AUTH_JWKS_URL: jwksUrl, AUTH_AUDIENCE: 'crm' })
  return createAuthenticator({
    db: gate.db,
    keys: gate.keys,
    config,
    nowMs: () => gate.nowMs,
    report: problem => problems.push(problem),
  })
}

const outsideClaims = { ...validClaims, iss: 'https://issuer.example', aud: 'crm', exp: now + 36_000 }

type Signing = { key: KeyObject; alg: string; kid?: string }
const byEc: Signing = { key: ec.privateKey, alg: 'ES256', kid: 'ec' }

function tokenOf(claims: object = {}, { key, alg, kid }: Signing = byEc, header: object = {}): string {
  const signed = `${encode({ alg, kid, ...header })}.${encode({ ...outsideClaims, ...claims })}`
  const hash = alg === 'EdDSA' ? null : 'sha256'
  const signature = sign(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

const presentToken = (token: string) => authenticate(authenticator, `Bearer ${token}`)
const accepted = { subject: 'attacker', organization: { key: 'default' } }
const unavailable = { code: 'operation_failed', status: 503, headers: { 'Retry-After': '30' } }

describe('a token of the outside issuer', () => {
  it.each<[string, Signing]>([
    ['ES256', byEc],
    ['RS256', { key: rsa.privateKey, alg: 'RS256', kid: 'rsa' }],
    ['EdDSA', { key: ed.privateKey, alg: 'EdDSA', kid: 'ed' }],
  ])('is accepted if it is signed with %s, and its key is fetched once', async (_, signing) => {
    for (const jti of ['a', 'b', 'c']) expect(await presentToken(tokenOf({ jti }, signing))).toMatchObject(accepted)
    expect(fetches).toBe(1)
  })

  it('is accepted if its typ is JWT or at+jwt', async () => {
    for (const typ of ['JWT', 'at+jwt', 'application/at+jwt'])
      expect(await presentToken(tokenOf({}, byEc, { typ }))).toMatchObject(accepted)
  })

  it('is accepted if its aud is a list that contains the configured audience', async () => {
    for (const aud of [['crm'], ['account', 'crm'], ['crm', 'realm-management', 'account']])
      expect(await presentToken(tokenOf({ aud }))).toMatchObject(accepted)
  })

  it('is accepted for 30 seconds after its exp, because clocks differ', async () => {
    const token = tokenOf({ exp: now - 29 })
    expect(await presentToken(token)).toMatchObject(accepted)
    gate.nowMs += 1_000
    expect(await presentToken(token)).toMatchObject({
      ...invalidToken,
      message: 'The token is not valid: it has expired.',
    })
  })

  it('may have a client_id, which does not refer to a client of kith', async () => {
    expect(await presentToken(tokenOf({ client_id: 'web' }))).toMatchObject(accepted)
  })

  const attacks: Record<string, () => string | Promise<string>> = {
    'for another audience': () => tokenOf({ aud: 'kith' }),
    'for several other audiences': () => tokenOf({ aud: ['kith', 'account'] }),
    'without an audience': () => tokenOf({ aud: undefined }),
    'without an organization': () => tokenOf({ org: undefined }),
    'with another iss': () => tokenOf({ iss: 'https://issuer.example/' }),
    'with the iss of kith, signed by the outside key': () => tokenOf({ iss: 'kith', aud: 'kith' }),
    'with the outside iss, signed by the key of kith': () => signOwn(gate, outsideClaims),
    'with the outside iss, signed by the key of kith under the outside kid': () =>
      signOwn(gate, outsideClaims, { alg: 'ES256', kid: 'ec' }),
    'with the name of kith as its subject': () => tokenOf({ sub: 'kith erasures apply' }),
    'with the form of a client of its organization as its subject': () =>
      tokenOf({ sub: 'default.0123456789abcdef', client_id: 'default.0123456789abcdef' }),
    'without a kid': () => tokenOf({}, { ...byEc, kid: undefined as never }),
    'with the kid of a key of another algorithm': () => tokenOf({}, { ...byEc, kid: 'rsa' }),
    'whose algorithm is not that of its key': () => tokenOf({}, { ...byEc, alg: 'RS256' }),
    'with alg HS256 in the header': () => tokenOf({}, byEc, { alg: 'HS256' }),
    'with a jku in the header': () => tokenOf({}, byEc, { jku: `${address}/mine.json` }),
    'that expired': () => tokenOf({ exp: now - 30 }),
    'with the kid __proto__': () => tokenOf({}, { ...byEc, kid: '__proto__' }),
  }
  it.each(Object.entries(attacks))('is rejected %s', async (_, forge) => {
    expect(await presentToken(await forge())).toMatchObject(invalidToken)
    expect(fetches).toBeLessThanOrEqual(1)
  })

  it('causes no fetch if its issuer is unknown', async () => {
    const issuers = ['https://evil.example', `${address}/`, address, 'HTTPS://ISSUER.EXAMPLE', '', null, 1, [], {}]
    for (const iss of issuers) {
      const header = { jku: `${address}/jku`, x5u: `${address}/x5u` }
      expect(await presentToken(tokenOf({ iss }))).toMatchObject(invalidToken)
      expect(await presentToken(tokenOf({ iss }, byEc, header))).toMatchObject(invalidToken)
    }
    expect(await authenticate(gate.open({}), `Bearer ${tokenOf()}`)).toMatchObject(invalidToken)
    expect(fetches).toBe(0)
  })
})

describe('the keys of the outside issuer', () => {
  it('are fetched once for twenty concurrent requests', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, jti) => presentToken(tokenOf({ jti: String(jti) }))),
    )
    for (const each of answers) expect(each).toMatchObject(accepted)
    expect(fetches).toBe(1)
  })

  it('are fetched again for an unknown kid, at most once in 30 seconds, and a new key is then accepted', async () => {
    expect(await presentToken(tokenOf())).toMatchObject(accepted)
    const next = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const token = tokenOf({}, { key: next.privateKey, alg: 'ES256', kid: 'next' })
    respond = sendSet([...validSet, jwkOf(next.publicKey, { kid: 'next' })])
    gate.nowMs += 29_999
    for (let index = 0; index < 20; index++)
      expect(await presentToken(tokenOf({}, { ...byEc, kid: `unknown ${index}` }))).toMatchObject(invalidToken)
    expect(await presentToken(token)).toMatchObject(invalidToken)
    expect(fetches).toBe(1)
    gate.nowMs += 1
    expect(await Promise.all(Array.from({ length: 20 }, () => presentToken(token)))).toMatchObject(
      Array(20).fill(accepted),
    )
    for (let index = 0; index < 20; index++)
      expect(await presentToken(tokenOf({}, { ...byEc, kid: `unknown ${index}` }))).toMatchObject(invalidToken)
    expect(fetches).toBe(2)
  })

  it('are fetched in the background after five minutes, and tokens of a withdrawn key are then rejected', async () => {
    const token = tokenOf()
    expect(await presentToken(token)).toMatchObject(accepted)
    respond = sendSet(validSet.slice(1))
    gate.nowMs += 299_999
    expect(await presentToken(token)).toMatchObject(accepted)
    expect(fetches).toBe(1)
    gate.nowMs += 1
    const fetched = once(server, 'request')
    expect(await presentToken(token)).toMatchObject(accepted)
    await fetched
    await expect.poll(() => presentToken(token)).toMatchObject(invalidToken)
    expect(fetches).toBe(2)
  })

  it('are fetched before use when they are ten minutes old', async () => {
    const token = tokenOf()
    expect(await presentToken(token)).toMatchObject(accepted)
    respond = sendSet([])
    gate.nowMs += 600_000
    expect(await presentToken(token)).toMatchObject(invalidToken)
  })

  it('are used for an hour while fetches fail, with a fetch at most every 30 seconds', async () => {
    expect(await presentToken(tokenOf())).toMatchObject(accepted)
    respond = (_, response) => response.writeHead(500).end()
    for (let minute = 1; minute < 60; minute++) {
      gate.nowMs += 60_000
      expect(await presentToken(tokenOf({ jti: `${minute}` }))).toMatchObject(accepted)
      await expect.poll(() => problems.length).toBe(Math.max(0, minute - 4))
      expect(await presentToken(tokenOf({ jti: `${minute}, too` }))).toMatchObject(accepted)
      expect(fetches).toBe(1 + problems.length)
    }
    gate.nowMs += 60_000
    expect(await presentToken(tokenOf({ jti: 'late' }))).toMatchObject(unavailable)
    expect(new Set(problems)).toEqual(
      new Set(['the keys of the outside issuer cannot be read: the response has status 500']),
    )
    respond = sendSet(validSet)
    expect(await presentToken(tokenOf())).toMatchObject(unavailable)
    gate.nowMs += 30_000
    expect(await presentToken(tokenOf())).toMatchObject(accepted)
  })

  it('are used while a fetch hangs, by all tokens that they have signed', async () => {
    expect(await presentToken(tokenOf())).toMatchObject(accepted)
    respond = (_, response) => void response.write('{')
    gate.nowMs += 600_000
    const tokens = ['a', 'b', 'c'].map(jti => presentToken(tokenOf({ jti })))
    for (const caller of await Promise.all(tokens)) expect(caller).toMatchObject(accepted)
    // The fetch is still running, without keys or a problem.
    expect([fetches, problems]).toEqual([2, []])
  })

  it('do not affect the tokens of kith when they are unavailable', async () => {
    respond = (_, response) => response.destroy()
    expect(await presentToken(tokenOf())).toMatchObject(unavailable)
    expect(await presentToken(await signOwn(gate, validClaims))).toMatchObject(accepted)
    expect(fetches).toBe(1)
  })

  const broken: [string, RequestListener, RegExp][] = [
    [
      'a redirect, even to a valid set',
      (request, response) => {
        if (request.url === '/jwks.json') response.writeHead(302, { Location: `${address}/elsewhere` }).end()
        else sendSet(validSet)(request, response)
      },
      /status 302/,
    ],
    ['another status', (_, response) => response.writeHead(404).end(JSON.stringify({ keys: validSet })), /404/],
    ['a body that is not JSON', (_, response) => response.end('<html>'), /not a JSON Web Key Set/],
    ['JSON that is not a key set', (_, response) => response.end('{"keys":{}}'), /not a JSON Web Key Set/],
    [
      'a set with the name keys twice',
      (_, response) => response.end('{"keys":[],"keys":[]}'),
      /not a JSON Web Key Set/,
    ],
    ['a set of 101 keys', sendSet(Array(101).fill(validSet[0])), /more than 100/],
    ['an endless body', (_, response) => void endless(response), /more than 262144 bytes/],
    ['a server that never ends its response', (_, response) => void response.write('{'), /timeout/],
    ['a broken connection', (_, response) => response.write('{', () => response.destroy()), /./],
  ]
  it.each(broken)('are not taken from %s', async (_, listener, reason) => {
    respond = listener
    expect(await presentToken(tokenOf())).toMatchObject(unavailable)
    expect(fetches).toBe(1)
    expect(problems).toEqual([expect.stringMatching(reason)])
  })

  it('are not taken from a server with an untrusted certificate or one that is unreachable', async () => {
    for (const url of [address.replace('http:', 'https:'), 'http://127.0.0.1:1/jwks.json']) {
      authenticator = open(url)
      expect(await presentToken(tokenOf())).toMatchObject(unavailable)
    }
    expect(problems).toHaveLength(2)
  })

  const unusable: [string, object][] = [
    ['is too weak', jwkOf(weak.publicKey, { kid: 'ec' })],
    ['has the exponent 1', { ...jwkOf(rsa.publicKey, { kid: 'ec' }), e: 'AQ' }],
    [
      'has an even modulus',
      { ...jwkOf(rsa.publicKey, { kid: 'ec' }), n: Buffer.alloc(256, 0xfe).toString('base64url') },
    ],
    ['is for encryption', jwkOf(ec.publicKey, { kid: 'ec', use: 'enc' })],
    ['is for signing only', jwkOf(ec.publicKey, { kid: 'ec', key_ops: ['sign'] })],
    ['is for another algorithm', jwkOf(ec.publicKey, { kid: 'ec', alg: 'ES384' })],
    ['is a shared secret', { kty: 'oct', kid: 'ec', k: Buffer.alloc(32, 7).toString('base64url'), alg: 'HS256' }],
    ['contains its private half', jwkOf(ec.privateKey, { kid: 'ec' })],
    ['is not on its curve', { ...jwkOf(ec.publicKey, { kid: 'ec' }), y: (validSet[0] as { x: string }).x }],
    ['is of another curve', jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey, { kid: 'ec' })],
    ['has no kid', jwkOf(ec.publicKey, {})],
    ['has a kid that is not a string', jwkOf(ec.publicKey, { kid: 1 })],
  ]
  it.each(unusable)('exclude a key that %s and keep the others', async (_, jwk) => {
    respond = sendSet([jwk, null, 'text', ...validSet.slice(1)])
    const signings = [byEc, { key: weak.privateKey, alg: 'RS256', kid: 'ec' }]
    for (const signing of signings) expect(await presentToken(tokenOf({}, signing))).toMatchObject(invalidToken)
    expect(await presentToken(tokenOf({}, { key: ed.privateKey, alg: 'EdDSA', kid: 'ed' }))).toMatchObject(accepted)
  })

  it('exclude two keys that share a kid', async () => {
    respond = sendSet([...validSet, jwkOf(rsa.publicKey, { kid: 'ec' })])
    expect(await presentToken(tokenOf())).toMatchObject(invalidToken)
    expect(await presentToken(tokenOf({}, { key: rsa.privateKey, alg: 'RS256', kid: 'ec' }))).toMatchObject(
      invalidToken,
    )
    expect(await presentToken(tokenOf({}, { key: rsa.privateKey, alg: 'RS256', kid: 'rsa' }))).toMatchObject(accepted)
  })
})

/** Writes until the client closes the connection. */
async function endless(response: ServerResponse) {
  const closed = once(response, 'close').then(() => true)
  for (let isClosed = false; !isClosed; ) {
    response.write(' '.repeat(65_536))
    isClosed = await Promise.race([closed, once(response, 'drain').then(() => false)])
  }
}
