import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sharedSecret, signShared } from '../../test/support/gate.ts'
import { exchange, parseResponse } from '../../test/support/process.ts'
import { allScopes, type Service, startService } from '../../test/support/service.ts'
import { routeTable } from '../app.ts'
import type { ParameterKind } from '../http/pipeline/route.ts'
import { scopes } from './scopes.ts'

let service: Service
let token: string
let key: string
beforeAll(async () => {
  service = await startService({ AUTH_SECRET: sharedSecret })
  const organization = await service.organization()
  ;({ token, key } = organization)
})
afterAll(() => service.stop())

const examples: Record<ParameterKind, string> = {
  external_id: 'ada',
  uuid: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  object_id: '6740a1b2c3d4e5f60718293a',
  key: 'orders',
  number: '1',
}

/** Every row of the route table, with an address of it. */
const rows = () =>
  routeTable(service).map(row => ({
    ...row,
    address: row.path.replace(/\{(\w+)\}/g, (_, name: string) => examples[row.params![name]!]),
  }))

/** All sets of scopes. */
const subsets = Array.from({ length: 2 ** scopes.length }, (_, bits) =>
  scopes.filter((_, index) => (bits >> index) & 1),
)

describe('every row of the route table', () => {
  it('refuses every token that lacks its scope, whatever else it has, and none that has it', async () => {
    const tokens = await Promise.all(
      subsets.map(async held => ({
        held,
        token: held.length > 0 ? await service.tokenFor(key, held.join(' ')) : undefined,
      })),
    )
    let tried = 0
    for (const { method, scope, address } of rows())
      for (const { held, token: given } of tokens) {
        if (given === undefined) continue
        const { status, headers, body } = await service.sender(given)(method, address)
        tried++
        if (held.includes(scope)) expect([401, 403], `${method} ${address} with ${held}`).not.toContain(status)
        else {
          expect([status, body.error], `${method} ${address} with ${held}`).toEqual([403, 'forbidden'])
          expect(headers.get('www-authenticate')).toBe(
            `Bearer realm="kith", error="insufficient_scope", scope="${scope}"`,
          )
        }
      }
    console.log(`${tried} requests: ${rows().length} rows, ${tokens.length - 1} sets of scopes`)
    expect(tried).toBe(rows().length * (2 ** scopes.length - 1))
  }, 120_000)

  it('refuses no token, and a wrong one, before it looks at anything else', async () => {
    for (const { method, address } of rows()) {
      for (const headers of [{}, { Authorization: 'Bearer x' }, { 'Content-Encoding': 'gzip' }]) {
        const response = await fetch(`${service.address}${address}`, { method, headers })
        expect([response.status, (await response.json()) as object]).toMatchObject([401, { error: 'unauthorized' }])
      }
    }
  })
})

const lacking: [string, unknown][] = [
  ['a part of it', 'schema'],
  ['a longer one', 'schema:reader'],
  ['one that ends in it', 'xschema:read'],
  ['it between tabs', 'people:read\tschema:read'],
  ['it behind a line end', 'people:read\nschema:read'],
  ['it behind a comma', 'people:read,schema:read'],
  ['it behind a space that is none', 'people:read\u00a0schema:read'],
  ['it in capitals', 'SCHEMA:READ'],
  ['a wildcard', '*'],
  ['a wildcard of it', 'schema:*'],
  ['a list of it', ['schema:read']],
  ['an object of it', { 'schema:read': true }],
  ['nothing', ''],
  ['null', null],
  ['no scope', undefined],
  ['true', true],
]
it.each(lacking)('a token whose scope is %s has it not: 403, for the token itself is right', async (_, scope) => {
  const exp = Math.floor(Date.now() / 1_000) + 60
  const given = signShared({ iss: 'kith', aud: 'kith', sub: 'attacker', org: key, exp, scope })
  const { status, body } = await service.sender(given)('GET', '/v1/schema')
  expect([status, body.error]).toEqual([403, 'forbidden'])
})

const bare = async (path: string, headers: Record<string, string>, init: RequestInit = {}) => {
  const response = await fetch(`${service.address}${path}`, { ...init, headers })
  return { status: response.status, challenge: response.headers.get('www-authenticate'), text: await response.text() }
}

describe('a token that is right', () => {
  it('is looked for in the header Authorization, and nowhere else', async () => {
    const form = { method: 'POST', body: `access_token=${token}` }
    const elsewhere = await Promise.all([
      bare(`/v1/schema?access_token=${token}`, {}),
      bare(`/v1/schema?authorization=Bearer%20${token}`, {}),
      bare('/v1/schema', { Cookie: `access_token=${token}; Authorization=Bearer ${token}` }),
      bare('/v1/schema', { 'X-Authorization': `Bearer ${token}` }),
      bare('/v1/schema', { 'Proxy-Authorization': `Bearer ${token}` }),
      bare('/v1/schema', { 'X-Access-Token': token }),
      bare('/v1/people/list', { 'Content-Type': 'application/x-www-form-urlencoded' }, form),
    ])
    for (const { status, challenge } of elsewhere) expect([status, challenge]).toEqual([401, 'Bearer realm="kith"'])
    expect((await bare('/v1/schema', { Authorization: `Bearer ${token}` })).status).toBe(200)
  })

  it.each([
    ['behind a tab', (good: string) => `Authorization: Bearer\t${good}`],
    ['behind two spaces', (good: string) => `Authorization: Bearer  ${good}`],
    ['in two headers', (good: string) => `Authorization: Bearer ${good}\r\nAuthorization: Bearer ${good}`],
    [
      'behind another in a header of its own',
      (good: string) => `Authorization: Basic YTpi\r\nauthorization: Bearer ${good}`,
    ],
    [
      'before another in a header of its own',
      (good: string) => `AUTHORIZATION: Bearer ${good}\r\nAuthorization: Bearer x`,
    ],
    ['twice in one header', (good: string) => `Authorization: Bearer ${good}, Bearer ${good}`],
    ['in quotes', (good: string) => `Authorization: Bearer "${good}"`],
    ['as a parameter', (good: string) => `Authorization: Bearer token="${good}"`],
  ])('is refused %s', async (_, header) => {
    const lines = ['GET /v1/schema HTTP/1.1', 'Host: kith', header(token), 'Connection: close', '', '']
    const { status, head } = parseResponse(await exchange(service.address, lines.join('\r\n')))
    expect(status).toBe(401)
    expect(head.toLowerCase()).toContain('www-authenticate: bearer realm="kith", error="invalid_token"')
  })
})

describe('a token that was tampered with', () => {
  const letter = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.')
  const change = fc.record({ share: fc.double({ min: 0, max: 1, noNaN: true }), removed: fc.nat(1), letter })
  const tamper = (
    text: string,
    { share, removed, letter: added }: { share: number; removed: number; letter: string },
  ) => {
    const at = Math.floor(share * (text.length - 1))
    return text.slice(0, at) + added + text.slice(at + removed)
  }

  it('anywhere is refused: a thousand times', async () => {
    const seed = Date.now()
    const changes = fc.sample(fc.array(change, { minLength: 1, maxLength: 3 }), { numRuns: 1_000, seed })
    const tampered = changes.map(each => each.reduce(tamper, token)).filter(each => each !== token)
    console.log(`${tampered.length} tokens tampered with, seed ${seed}`)
    expect(tampered.length).toBeGreaterThan(900)
    // All at once: those with another name for their key share the look-ups of it.
    const answers = await Promise.all(
      tampered.map(async each => ({ each, ...(await bare('/v1/schema', { Authorization: `Bearer ${each}` })) })),
    )
    expect(answers.filter(({ status }) => status !== 401)).toEqual([])
  }, 60_000)

  it('is answered as one by an unknown key and one of no form are, to the byte but for the request’s number', async () => {
    const [header, payload, signature] = token.split('.') as [string, string, string]
    const unknown = Buffer.from(JSON.stringify({ alg: 'ES256', kid: 'k'.repeat(43), typ: 'JWT' })).toString('base64url')
    const tokens = [
      `${header}.${payload}.${signature.split('').reverse().join('')}`,
      `${unknown}.${payload}.${signature}`,
      `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`,
      'x',
      'x'.repeat(9_000),
    ]
    const answers = await Promise.all(
      tokens.map(each => bare('/v1/schema', { Authorization: `Bearer ${each}`, 'X-Request-Id': 'one' })),
    )
    expect(new Set(answers.map(answer => JSON.stringify(answer))).size).toBe(1)
    expect(answers[0]!.status).toBe(401)
  })

  it('leaves no trace of itself in the log', async () => {
    await bare('/v1/schema', { Authorization: `Bearer ${token}x` })
    expect(service.logs.join('')).not.toContain(token)
  })
})

it('all scopes are those of the route table', () => {
  expect([...new Set(rows().map(({ scope }) => scope))].sort()).toEqual(allScopes.split(' ').sort())
})
