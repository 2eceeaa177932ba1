import { describe, it } from 'vitest'
import { expectRefused, now, signOwn, useGate, validClaims } from '../../test/support/gate.ts'

const gate = useGate()
const withClaims = (claims: Record<string, unknown>) => signOwn(gate, { ...validClaims, ...claims })
const without = (name: string) =>
  signOwn(gate, Object.fromEntries(Object.entries(validClaims).filter(([key]) => key !== name)))

describe('a correctly signed token with invalid claims', () => {
  const good = JSON.stringify(validClaims).slice(1, -1)
  const attacks: Record<string, () => Promise<string>> = {
    'lack exp': () => without('exp'),
    'have exp as text': () => withClaims({ exp: String(now + 60) }),
    'have exp null': () => withClaims({ exp: null }),
    'have exp past': () => withClaims({ exp: now - 1 }),
    'have exp now': () => withClaims({ exp: now + 0.5 }),
    'have exp negative': () => withClaims({ exp: -1 }),
    'have exp in milliseconds': () => withClaims({ exp: now * 1_000 + 60_000 }),
    'have exp too large for a number': () => signOwn(gate, `{${good.replace(String(now + 60), '1e400')}}`),
    'have nbf in the future': () => withClaims({ nbf: now + 32 }),
    'have nbf as text': () => withClaims({ nbf: String(now) }),
    'have iat in the future': () => withClaims({ iat: now + 32 }),
    'have iat as a list': () => withClaims({ iat: [now] }),
    'lack iss': () => without('iss'),
    'have iss as a list': () => withClaims({ iss: ['kith'] }),
    'have iss followed by a space': () => withClaims({ iss: 'kith ' }),
    'have iss in capitals': () => withClaims({ iss: 'Kith' }),
    'lack aud': () => without('aud'),
    'have aud as an empty list': () => withClaims({ aud: [] }),
    'have aud as a list without kith': () => withClaims({ aud: ['account', 'Kith', 'kith/', 'kith account'] }),
    'have aud as a list with a number': () => withClaims({ aud: ['kith', 1] }),
    'have aud as a list in a list': () => withClaims({ aud: [['kith']] }),
    'have aud as an object': () => withClaims({ aud: { 0: 'kith', length: 1 } }),
    'have aud followed by a slash': () => withClaims({ aud: 'kith/' }),
    'lack org': () => without('org'),
    'have org as a list': () => withClaims({ org: ['default'] }),
    'have org with a capital letter': () => withClaims({ org: 'Default' }),
    'have org with a line end': () => withClaims({ org: 'default\n' }),
    'lack sub': () => without('sub'),
    'have sub empty': () => withClaims({ sub: '' }),
    'have sub as a number': () => withClaims({ sub: 1 }),
    'have NUL in sub': () => withClaims({ sub: 'a\u0000b' }),
    'have a lone surrogate in sub': () => signOwn(gate, `{${good.replace('attacker', '\\ud800')}}`),
    'have sub of 256 characters': () => withClaims({ sub: 's'.repeat(256) }),
    'have sub as the name of kith': () => withClaims({ sub: 'kith' }),
    'have sub as a name of kith in other letters': () => withClaims({ sub: ' K\u0131th'.replace('\u0131', '\u00ec') }),
    'have sub as the clock of retention': () => withClaims({ sub: 'retention' }),
    'have jti as a number': () => withClaims({ jti: 1 }),
    'contain org twice': () => signOwn(gate, `{${good},"org":"default"}`),
    'contain exp twice, once escaped': () => signOwn(gate, `{${good},"\\u0065xp":${now + 9_999}}`),
    'contain a nested name twice': () => signOwn(gate, `{${good},"x":[{"a":1,"a":2}]}`),
    'contain a name twice around 1,500 nested arrays': () =>
      signOwn(gate, `{${good},"x":${'['.repeat(1_500)}${']'.repeat(1_500)},"x":1}`),
  }
  it.each(Object.entries(attacks))('is rejected if the claims %s', async (_, forge) =>
    expectRefused(gate, await forge()),
  )
})
