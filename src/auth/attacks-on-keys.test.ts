import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { exportJWK } from 'jose'
import { describe, expect, it } from 'vitest'
import {
  authenticate,
  encode,
  expectRefused,
  invalidToken,
  signForeign,
  signOwn,
  signShared,
  useGate,
  validClaims,
} from '../../test/support/gate.ts'

const gate = useGate()
const withHeader = (header: Record<string, unknown>) =>
  signOwn(gate, validClaims, { alg: 'ES256', kid: gate.kid, ...header })

async function publicPem(): Promise<string> {
  const key = await exportJWK(gate.keys.verifying.get(gate.kid)!.key)
  return createPublicKey({ key: { ...key }, format: 'jwk' })
    .export({ type: 'spki', format: 'pem' })
    .toString()
}

describe('the algorithm and key of a token', () => {
  const attacks: Record<string, () => string | Promise<string>> = {
    'is none': () => `${encode({ alg: 'none' })}.${encode(validClaims)}.`,
    'is none, with a signature': () => withHeader({ alg: 'none' }),
    'is nOnE': () => withHeader({ alg: 'nOnE' }),
    'is NONE without kid': () => signOwn(gate, validClaims, { alg: 'NONE' }),
    'is missing': () => signOwn(gate, validClaims, { kid: gate.kid }),
    'is a list': () => signOwn(gate, validClaims, { alg: ['ES256'], kid: gate.kid }),
    'is ES256 in lower case': () => withHeader({ alg: 'es256' }),
    'is ES384': () => withHeader({ alg: 'ES384' }),
    'is HS256 with the public key as secret': async () => signShared(validClaims, { alg: 'HS256' }, await publicPem()),
    'is HS256 with the public key as secret and its kid': async () =>
      signShared(validClaims, { alg: 'HS256', kid: gate.kid }, await publicPem()),
    'is HS256 with the shared secret and the kid of an own key': () =>
      signShared(validClaims, { alg: 'HS256', kid: gate.kid }),
    'is HS256 with the shared secret and an unknown kid': () => signShared(validClaims, { alg: 'HS256', kid: 'other' }),
    'is HS256 with an empty secret': () => signShared(validClaims, { alg: 'HS256' }, ''),
    'is HS512': () => signShared(validClaims, { alg: 'HS512' }),
    'is ES256 without kid': () => signOwn(gate, validClaims, { alg: 'ES256' }),
    'has a path as kid': () => withHeader({ kid: '../../dev/null' }),
    'has SQL as kid': () => withHeader({ kid: `x' or '1'='1` }),
    'has __proto__ as kid': () => withHeader({ kid: '__proto__' }),
    'has a number as kid': () => withHeader({ kid: 1 }),
    'has a kid of 5,000 characters': () => withHeader({ kid: 'k'.repeat(5_000) }),
    'is another ES256 key': () =>
      signForeign(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, { alg: 'ES256', kid: gate.kid }),
    'is an Ed25519 key with the kid of an own key': () =>
      signForeign(generateKeyPairSync('ed25519').privateKey, { alg: 'EdDSA', kid: gate.kid }),
    'is carried in the header as jwk': () => {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      return signForeign(privateKey, { alg: 'ES256', jwk: publicKey.export({ format: 'jwk' }) })
    },
  }
  it.each(Object.entries(attacks))('is rejected before any database work if it %s', async (_, forge) =>
    expectRefused(gate, await forge()),
  )

  it('is rejected for HS256 if no shared secret is configured', async () =>
    expectRefused(gate, signShared(validClaims, { alg: 'HS256' }), gate.open({})))
})

describe('the header of a correctly signed token', () => {
  it.each([
    ['jwk', { jwk: {} }],
    ['jku', { jku: 'https://keys.example/jwks.json' }],
    ['x5u', { x5u: 'https://keys.example/x5u' }],
    ['x5c', { x5c: [] }],
    ['crit', { crit: ['exp'] }],
    ['b64', { b64: true }],
    ['b64 with its crit', { b64: false, crit: ['b64'] }],
    ['enc', { enc: 'A256GCM' }],
    ['another typ', { typ: 'JWE' }],
    ['a typ that is not a string', { typ: ['JWT'] }],
  ])('is rejected if it has %s', async (_, header) => expectRefused(gate, await withHeader(header)))

  it('is rejected if it has a name twice', async () =>
    expectRefused(gate, await signOwn(gate, validClaims, `{"alg":"none","alg":"ES256","kid":"${gate.kid}"}`)))
})

it('a wrong signature, an unknown key, a wrong algorithm and a malformed token get identical responses', async () => {
  const [header, payload, signature] = (await signOwn(gate, validClaims)).split('.')
  const tokens = [
    `${header}.${payload}.${'B'.repeat(signature!.length - 1)}A`,
    `${header}.${encode({ ...validClaims, exp: 1 })}.${signature}`,
    await withHeader({ kid: 'unknown' }),
    await withHeader({ alg: 'RS256' }),
    signShared(validClaims, { alg: 'HS256', kid: 'unknown' }),
    'x.y.z',
  ]
  const refusals = await Promise.all(tokens.map(token => authenticate(gate.authenticator, `Bearer ${token}`)))
  expect(refusals[0]).toMatchObject(invalidToken)
  expect(new Set(refusals.map(refusal => JSON.stringify(refusal))).size).toBe(1)
})
