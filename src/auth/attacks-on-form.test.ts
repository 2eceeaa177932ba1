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
import { loadConfig } from '../config.ts'

const gate = useGate()
const withClaims = (claims: Record<string, unknown>) => signOwn(gate, { ...validClaims, ...claims })

const accepted = { subject: 'attacker', organization: { key: 'default' } }

describe('a token is refused of the form', () => {
  // The last letter of 64 bytes is A, Q, g or w; the next one decodes to the same bytes.
  const nextLetter = (letter: string) => String.fromCharCode(letter.charCodeAt(0) + 1)
  const forms: Record<string, (parts: [string, string, string]) => string> = {
    nothing: () => '',
    'one part': ([header]) => header,
    'two parts': ([header, payload]) => `${header}.${payload}`,
    'an empty signature': ([header, payload]) => `${header}.${payload}.`,
    'four parts': parts => [...parts, 'AAAA'].join('.'),
    'five parts': parts => [...parts, 'AAAA', 'AAAA'].join('.'),
    'a truncated signature': ([header, payload, signature]) => `${header}.${payload}.${signature.slice(0, 40)}`,
    'a signature of zeros': ([header, payload]) => `${header}.${payload}.${'A'.repeat(86)}`,
    padding: parts => `${parts.join('.')}==`,
    'a space behind': parts => `${parts.join('.')} `,
    'a space within': ([header, payload, signature]) => `${header}. ${payload}.${signature}`,
    'a line end behind': parts => `${parts.join('.')}\n`,
    'bits that mean nothing': parts => parts.join('.').replace(/.$/, last => nextLetter(last)),
    'base64 in the old letters': ([header, payload, signature]) => `${header}.${payload}.+${signature.slice(1)}`,
    'letters beyond ASCII': parts => parts.join('.').replace('e', 'é'),
    'a token in a token': ([header, ...rest]) => `${header}.${encode([header, ...rest].join('.'))}.${rest[1]}`,
  }
  it.each(Object.entries(forms))('%s', async (_, change) => {
    await expectRefused(gate, change((await signOwn(gate, validClaims)).split('.') as [string, string, string]))
  })

  it('a payload that is no object', async () => {
    for (const payload of ['[]', 'null', '1', '"text"', '{', '{}x', '\ufeff{}'])
      await expectRefused(gate, await signOwn(gate, payload))
  })

  it('one byte more than the limit, and not of the limit', async () => {
    const { tokenBytes } = loadConfig({}).limits
    const length = async (padding: number) => (await withClaims({ pad: 'p'.repeat(padding) })).length
    const base = Math.floor(((tokenBytes - (await length(0))) * 3) / 4)
    let padding = base
    while ((await length(padding + 1)) <= tokenBytes) padding++
    expect(
      await authenticate(gate.authenticator, `Bearer ${await withClaims({ pad: 'p'.repeat(padding) })}`),
    ).toMatchObject(accepted)
    gate.queries = 0
    await expectRefused(gate, await withClaims({ pad: 'p'.repeat(padding + 1) }))
  })
})

describe('Authorization', () => {
  const missing = { word: 'unauthorized', status: 401, headers: { 'WWW-Authenticate': 'Bearer realm="kith"' } }

  it.each([[], [''], ['Basic a2l0aDpraXRo'], ['BearerX abc'], ['Digest x']].map(headers => [headers]))(
    '%j is no token: the answer has no error code',
    async headers => {
      expect(await authenticate(gate.authenticator, ...headers)).toEqual(expect.objectContaining(missing))
    },
  )

  it('takes Bearer in any letters', async () => {
    const token = await withClaims({})
    for (const scheme of ['Bearer', 'bearer', 'BEARER'])
      expect(await authenticate(gate.authenticator, `${scheme} ${token}`)).toMatchObject(accepted)
  })

  it('takes exactly one space', async () => {
    const token = await withClaims({})
    for (const header of ['Bearer', 'Bearer ', `Bearer\t${token}`, `Bearer  ${token}`, `Bearer ${token},${token}`])
      expect(await authenticate(gate.authenticator, header)).toMatchObject(invalidToken)
  })

  it('stands once, also when both are right', async () => {
    const header = `Bearer ${await withClaims({})}`
    expect(await authenticate(gate.authenticator, header)).toMatchObject(accepted)
    expect(await authenticate(gate.authenticator, header, header)).toMatchObject(invalidToken)
  })
})
