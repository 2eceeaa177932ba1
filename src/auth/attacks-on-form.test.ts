import { describe, expect, it } from 'vitest'
import {
  authenticate,
  encode,
  expectRefused,
  invalidToken,
  signOwn,
  useGate,
  validClaims,
} from '../../test/support/gate.ts'
import { loadConfig } from '../process/config.ts'

const gate = useGate()
const withClaims = (claims: Record<string, unknown>) => signOwn(gate, { ...validClaims, ...claims })

const accepted = { subject: 'attacker', organization: { key: 'default' } }

describe('the form of a token', () => {
  // The base64url text of 64 bytes ends in A, Q, g or w. The next letter decodes to the same bytes.
  const nextLetter = (letter: string) => String.fromCharCode(letter.charCodeAt(0) + 1)
  const forms: Record<string, (parts: [string, string, string]) => string> = {
    'an empty token': () => '',
    'one part': ([header]) => header,
    'two parts': ([header, payload]) => `${header}.${payload}`,
    'an empty signature': ([header, payload]) => `${header}.${payload}.`,
    'four parts': parts => [...parts, 'AAAA'].join('.'),
    'five parts': parts => [...parts, 'AAAA', 'AAAA'].join('.'),
    'a truncated signature': ([header, payload, signature]) => `${header}.${payload}.${signature.slice(0, 40)}`,
    'a signature of zeros': ([header, payload]) => `${header}.${payload}.${'A'.repeat(86)}`,
    padding: parts => `${parts.join('.')}==`,
    'a trailing space': parts => `${parts.join('.')} `,
    'a space inside': ([header, payload, signature]) => `${header}. ${payload}.${signature}`,
    'a trailing line feed': parts => `${parts.join('.')}\n`,
    'non-canonical base64url': parts => parts.join('.').replace(/.$/, last => nextLetter(last)),
    'the letters of base64 instead of base64url': ([header, payload, signature]) =>
      `${header}.${payload}.+${signature.slice(1)}`,
    'a letter that is not ASCII': parts => parts.join('.').replace('e', 'é'),
    'a token inside a token': ([header, ...rest]) => `${header}.${encode([header, ...rest].join('.'))}.${rest[1]}`,
  }
  it.each(Object.entries(forms))('rejects %s', async (_, change) => {
    await expectRefused(gate, change((await signOwn(gate, validClaims)).split('.') as [string, string, string]))
  })

  it('rejects a payload that is not a JSON object', async () => {
    for (const payload of ['[]', 'null', '1', '"text"', '{', '{}x', '\ufeff{}'])
      await expectRefused(gate, await signOwn(gate, payload))
  })

  it('accepts a token of exactly the size limit and rejects one that is a byte longer', async () => {
    const { tokenBytes } = loadConfig({}).limits
    const length = async (padding: number) => (await withClaims({ pad: 'p'.repeat(padding) })).length
    const base = Math.floor(((tokenBytes - (await length(0))) * 3) / 4)
    let padding = base
    while ((await length(padding + 1)) <= tokenBytes) padding++
    expect(
      await authenticate(gate.authenticator, `Bearer ${await withClaims({ pad: 'p'.repeat(padding) })}`),
    ).toMatchObject(accepted)
    gate.queries = []
    await expectRefused(gate, await withClaims({ pad: 'p'.repeat(padding + 1) }))
  })
})

describe('the Authorization header', () => {
  const missing = { code: 'unauthorized', status: 401, headers: { 'WWW-Authenticate': 'Bearer realm="kith"' } }

  it.each([[], [''], ['Basic a2l0aDpraXRo'], ['BearerX abc'], ['Digest x']].map(headers => [headers]))(
    '%j counts as no token, so the challenge has no error code',
    async headers => {
      expect(await authenticate(gate.authenticator, ...headers)).toEqual(expect.objectContaining(missing))
    },
  )

  it('accepts Bearer in upper and lower case', async () => {
    const token = await withClaims({})
    for (const scheme of ['Bearer', 'bearer', 'BEARER'])
      expect(await authenticate(gate.authenticator, `${scheme} ${token}`)).toMatchObject(accepted)
  })

  it('requires exactly one space after Bearer', async () => {
    const token = await withClaims({})
    for (const header of ['Bearer', 'Bearer ', `Bearer\t${token}`, `Bearer  ${token}`, `Bearer ${token},${token}`])
      expect(await authenticate(gate.authenticator, header)).toMatchObject(invalidToken)
  })

  it('is rejected if it occurs twice, even if both are valid', async () => {
    const header = `Bearer ${await withClaims({})}`
    expect(await authenticate(gate.authenticator, header)).toMatchObject(accepted)
    expect(await authenticate(gate.authenticator, header, header)).toMatchObject(invalidToken)
  })
})
