import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedSecret, signShared } from '../../test/support/gate.ts'
import { exchange, parseResponse } from '../../test/support/process.ts'
import { isWhole, someRuns } from '../../test/support/runs.ts'
import { allScopes, useOwnService } from '../../test/support/service.ts'
import { routeTable } from '../process/app.ts'
import type { ParameterKind } from '../route/route.ts'
import { scopes } from '../route/scopes.ts'

const service = useOwnService({ AUTH_SECRET: sharedSecret })
let token: string
let key: string
beforeAll(async () => {
  const organization = await service.organization()
  ;({ token, key } = organization)
})

const examples: Record<ParameterKind, string> = {
  external_id: 'ada',
  uuid: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  object_id: '6740a1b2c3d4e5f60718293a',
  channel: 'email',
  key: 'orders',
  client_id: 'nobody.Zm9vYmFyYmF6cXV4',
  number: '1',
  count: '0',
  path: '0/000',
}

/** All rows of the route table, with example paths. */
const rows = () =>
  routeTable(service).map(row => ({
    ...row,
    address: row.path.replace(/\{(\w+)\}/g, (_, name: string) => examples[row.params![name]!]),
  }))

/** The scopes that a token needs for a row. */
function neededFor({ scope, path }: { scope: string; path: string }): string[] {
  if (path.endsWith('/dossier')) return [scope, 'people:read', 'consents:read', 'changes:read', 'records:read']
  if (path.endsWith('/export')) return [scope, path.startsWith('/v1/people') ? 'people:read' : 'records:read']
  // An earlier row creates the stack of notes, which has the first attribute.
  if (path.endsWith('/violations')) return [scope, 'records:read']
  if (path.endsWith('/preview') && scope === 'people:erase') return [scope, 'people:read']
  return path.endsWith('/history') && scope !== 'consents:read' ? [scope, 'changes:read'] : [scope]
}

/** Each scope alone, each pair of scopes, all but one, all but two, and all. */
const sets = Array.from({ length: 2 ** scopes.length }, (_, bits) =>
  scopes.filter((_, index) => (bits >> index) & 1),
).filter(({ length }) => (length > 0 && length <= 2) || length >= scopes.length - 2)

/**
 * Whether a test of a row tries a set of scopes. `npm test` tries the scopes that the row needs, and the same without
 * one of them.
 */
const isTried = (held: readonly string[], needed: readonly string[]) =>
  isWhole ||
  (held.length === needed.length && needed.every(scope => held.includes(scope))) ||
  (held.length === scopes.length - 1 && !needed.every(scope => held.includes(scope)))

describe('every row of the route table', () => {
  it('rejects every token that lacks a scope and no token that has all that it needs', async () => {
    const tokens = await Promise.all(
      sets.map(async held => ({ held, scopedToken: await service.tokenFor(key, held.join(' ')) })),
    )
    let tried = 0
    for (const row of rows())
      for (const { held, scopedToken } of tokens.filter(({ held }) => isTried(held, neededFor(row)))) {
        const { method, address } = row
        const { status, headers, body } = await service.sender(scopedToken)(method, address)
        tried++
        const [missing] = neededFor(row).filter(scope => !(held as string[]).includes(scope))
        if (missing === undefined) expect([401, 403], `${method} ${address} with ${held}`).not.toContain(status)
        else {
          expect([status, body.error], `${method} ${address} with ${held}`).toEqual([403, 'forbidden'])
          expect(headers.get('www-authenticate')).toBe(
            `Bearer realm="kith", error="insufficient_scope", scope="${missing}"`,
          )
        }
      }
    console.log(`${tried} requests: ${rows().length} rows`)
  }, 120_000)

  it('rejects a missing or invalid token before it checks anything else', async () => {
    for (const { method, address } of rows()) {
      for (const headers of [{}, { Authorization: 'Bearer x' }, { 'Content-Encoding': 'gzip' }]) {
        const response = await fetch(`${service.address}${address}`, { method, headers })
        expect([response.status, (await response.json()) as object]).toMatchObject([401, { error: 'unauthorized' }])
      }
    }
  })
})

const invalidScopes: [string, unknown][] = [
  ['a prefix of schema:read', 'schema'],
  ['a longer word', 'schema:reader'],
  ['a longer word that ends in schema:read', 'xschema:read'],
  ['schema:read after a tab', 'people:read\tschema:read'],
  ['schema:read after a line feed', 'people:read\nschema:read'],
  ['schema:read after a comma', 'people:read,schema:read'],
  ['schema:read after a no-break space', 'people:read\u00a0schema:read'],
  ['schema:read in capitals', 'SCHEMA:READ'],
  ['a wildcard', '*'],
  ['a wildcard for schema', 'schema:*'],
  ['an array of schema:read', ['schema:read']],
  ['an object with the key schema:read', { 'schema:read': true }],
  ['empty', ''],
  ['null', null],
  ['absent', undefined],
  ['true', true],
]
it.each(invalidScopes)('a valid token gets 403 for GET /v1/schema if its scope claim is %s', async (_, scope) => {
  const exp = Math.floor(Date.now() / 1_000) + 60
  const scopedToken = signShared({ iss: 'kith', aud: 'kith', sub: 'attacker', org: key, exp, scope })
  const { status, body } = await service.sender(scopedToken)('GET', '/v1/schema')
  expect([status, body.error]).toEqual([403, 'forbidden'])
})

const bare = async (path: string, headers: Record<string, string>, init: RequestInit = {}) => {
  const response = await fetch(`${service.address}${path}`, { ...init, headers })
  return { status: response.status, challenge: response.headers.get('www-authenticate'), text: await response.text() }
}

describe('a valid token', () => {
  it('is read from the Authorization header and from nowhere else', async () => {
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
    ['after a tab', (good: string) => `Authorization: Bearer\t${good}`],
    ['after two spaces', (good: string) => `Authorization: Bearer  ${good}`],
    ['in two headers', (good: string) => `Authorization: Bearer ${good}\r\nAuthorization: Bearer ${good}`],
    [
      'in a second Authorization header after another credential',
      (good: string) => `Authorization: Basic YTpi\r\nauthorization: Bearer ${good}`,
    ],
    [
      'in a first Authorization header before another credential',
      (good: string) => `AUTHORIZATION: Bearer ${good}\r\nAuthorization: Bearer x`,
    ],
    ['twice in one header', (good: string) => `Authorization: Bearer ${good}, Bearer ${good}`],
    ['in quotes', (good: string) => `Authorization: Bearer "${good}"`],
    ['as a parameter', (good: string) => `Authorization: Bearer token="${good}"`],
  ])('is rejected %s', async (_, header) => {
    const lines = ['GET /v1/schema HTTP/1.1', 'Host: kith', header(token), 'Connection: close', '', '']
    const { status, head } = parseResponse(await exchange(service.address, lines.join('\r\n')))
    expect(status).toBe(401)
    expect(head.toLowerCase()).toContain('www-authenticate: bearer realm="kith", error="invalid_token"')
  })
})

describe('a modified token', () => {
  const letter = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.')
  const change = fc.record({ share: fc.double({ min: 0, max: 1, noNaN: true }), removed: fc.nat(1), letter })
  const modify = (
    text: string,
    { share, removed, letter: added }: { share: number; removed: number; letter: string },
  ) => {
    const at = Math.floor(share * (text.length - 1))
    return text.slice(0, at) + added + text.slice(at + removed)
  }

  it('is rejected in each of many random modifications', async () => {
    const seed = Date.now()
    const runs = someRuns(1_000)
    const changes = fc.sample(fc.array(change, { minLength: 1, maxLength: 3 }), { ...runs, seed })
    const modified = changes.map(each => each.reduce(modify, token)).filter(each => each !== token)
    console.log(`${modified.length} modified tokens, seed ${seed}`)
    expect(modified.length).toBeGreaterThan(0.9 * runs.numRuns)
    // The requests run concurrently, so tokens with an unknown kid share the look-ups of keys.
    const answers = await Promise.all(
      modified.map(async each => ({ each, ...(await bare('/v1/schema', { Authorization: `Bearer ${each}` })) })),
    )
    expect(answers.filter(({ status }) => status !== 401)).toEqual([])
  }, 60_000)

  it('gets the same response as a token of an unknown key and a malformed one, except for the request id', async () => {
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

  it('does not appear in the log', async () => {
    await bare('/v1/schema', { Authorization: `Bearer ${token}x` })
    expect(service.logs.join('')).not.toContain(token)
  })
})

it('the list of scopes equals the scopes of the route table', () => {
  expect([...new Set(rows().map(({ scope }) => scope))].sort()).toEqual(allScopes.split(' ').sort())
})
