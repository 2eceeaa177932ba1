import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { someRuns } from '../../../test/support/runs.ts'
import { allScopes, type Send, useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, 'referrer', 'friends', 'employer', 'buyer', {
  key: 'news',
  channels: [{ channel: 'email', is_default: true }],
})
const { ok, send } = shop

const read = (path: string, tag?: string, by: Send = send) =>
  by('GET', path, undefined, tag === undefined ? {} : { 'If-None-Match': tag })

describe('a read with If-None-Match', () => {
  it('gets a tag of the whole body, and with it 304 without a body until something that it shows changes', async () => {
    await ok('POST', '/v1/people', { external_id: 'ada', attribute_values: { referrer: 'bob' } })
    const plain = await read('/v1/people/ada')
    expect(plain.headers.get('ETag')).toBe('"1"')
    const first = await read('/v1/people/ada', '"1"')
    const tag = first.headers.get('ETag')!
    expect([first.status, tag]).toEqual([200, expect.stringMatching(/^"1-[\w-]{22}"$/)])
    expect(first.body).toEqual(plain.body)
    const again = await read('/v1/people/ada', `W/"x", W/${tag}`)
    expect([again.status, again.body, again.headers.get('ETag')]).toEqual([304, {}, tag])
    await ok('PATCH', '/v1/people/bob', { external_id: 'robert' })
    const renamed = await read('/v1/people/ada', tag)
    expect([renamed.status, renamed.body.data.version, renamed.body.data.attribute_values.referrer]).toEqual([
      200,
      1,
      'robert',
    ])
  })

  it('gets the tag of definitions also without the header', async () => {
    for (const path of ['/v1/schema/stacks', '/v1/schema/attributes/1', '/v1/schema/consent-types', '/v1/schema']) {
      const tag = (await read(path)).headers.get('ETag')!
      expect([path, (await read(path, tag)).status]).toEqual([path, 304])
      await ok('POST', '/v1/people', { external_id: null })
      expect([path, (await read(path, tag)).status]).toEqual([path, 304])
    }
  })

  it('may have any list, also one that is malformed, and `*` for any body', async () => {
    await ok('POST', '/v1/people', { external_id: 'ada' })
    const { headers } = await read('/v1/people/ada', '')
    const tag = headers.get('ETag')!
    for (const header of ['"1"', '"', ',,,', tag.slice(1), tag.replace('1-', '2-'), '"x",'.repeat(2_000)])
      expect([header, (await read('/v1/people/ada', header)).status]).toEqual([header, 200])
    for (const header of ['*', `"a,b", ${tag}`, `${'"x",'.repeat(2_000)}${tag}`])
      expect([header, (await read('/v1/people/ada', header)).status]).toEqual([header, 304])
    const head = await send('HEAD', '/v1/people/ada', undefined, { 'If-None-Match': tag })
    expect([head.status, head.headers.get('ETag')]).toEqual([304, tag])
    const notes = Array(7).fill('x'.repeat(60_000))
    await ok('PATCH', '/v1/people/ada', { attribute_values: { notes } })
    for (let round = 0; round < 200; round += 1) expect((await read('/v1/people/ada', '*')).status).toBe(304)
    expect((await read('/v1/people/nobody', '*')).status).toBe(404)
    expect((await send('POST', '/v1/people/list', {}, { 'If-None-Match': '*' })).status).toBe(200)
  })

  it('returns a tag that If-Match takes for its version', async () => {
    await ok('POST', '/v1/people', { external_id: 'ada' })
    const tag = (await read('/v1/people/ada', '"0"')).headers.get('ETag')!
    const patch = (first_name: string, ifMatch: string) =>
      send('PATCH', '/v1/people/ada', { first_name }, { 'If-Match': ifMatch })
    expect((await patch('Ada', tag)).headers.get('ETag')).toBe('"2"')
    expect((await patch('Eve', tag)).status).toBe(412)
    expect((await patch('Eve', `W/${tag.replace('1-', '2-')}`)).status).toBe(412)
    expect((await patch('Eve', '"2-gzip"')).status).toBe(412)
    expect((await patch('Ada L.', '"2"')).status).toBe(200)
  })
})

const names = fc.constantFrom('ada', 'bob', 'eve')
type Step = [method: string, path: string, body?: object]
/** Writes that change the reads of the entity itself and of others. Some are refused, and some change nothing. */
const step = fc.oneof<fc.Arbitrary<Step>[]>(
  fc
    .tuple(names, names)
    .map(([name, other]): Step => ['PATCH', `/v1/people/${name}`, { attribute_values: { referrer: other } }]),
  fc.tuple(names, names).map(([name, other]): Step => ['PATCH', `/v1/people/${name}`, { external_id: other }]),
  fc
    .tuple(names, fc.constantFrom('A', 'B', null))
    .map(([name, first_name]): Step => ['PATCH', `/v1/people/${name}`, { first_name }]),
  fc
    .tuple(names, fc.boolean())
    .map(([name, email_consent]): Step => ['PATCH', `/v1/people/${name}`, { email_consent }]),
  fc.constantFrom('A', 'B').map((name): Step => ['PATCH', '/v1/stacks/companies/acme', { attribute_values: { name } }]),
  names.map((name): Step => ['DELETE', `/v1/people/${name}`]),
  names.map(
    (external_id): Step => ['POST', '/v1/people/upsert', { external_id, attribute_values: { employer: 'acme' } }],
  ),
  fc.tuple(names, names).map(([name, from]): Step => ['POST', `/v1/people/${name}/merge`, { from }]),
  fc.boolean().map((default_state): Step => ['PATCH', '/v1/schema/consent-types/2', { default_state }]),
  fc.constantFrom('active', 'archived').map((state): Step => ['PATCH', '/v1/schema/consent-types/2', { state }]),
  fc.constantFrom('A {name}', 'B {name}').map((label): Step => ['PATCH', '/v1/schema/stacks/companies', { label }]),
  fc.constantFrom('employer', 'referrer').map((key): Step => ['DELETE', `/v1/schema/attributes/by-key/people/${key}`]),
  fc.constantFrom('x', 'y').map((name): Step => ['PATCH', '/v1/schema/stacks/companies', { name }]),
  fc
    .constantFrom('first_name', 'last_name')
    .map(
      (field): Step => [
        'PATCH',
        '/v1/roles/desk',
        { fields: { people: { read: [field, 'attribute_values'], write: [] } } },
      ],
    ),
)

const paths = [
  ...['ada', 'bob'].flatMap(name => ['', '?labels=true', '?links=id'].map(query => `/v1/people/${name}${query}`)),
  '/v1/stacks/companies/acme?labels=true',
  ...[
    '/v1/schema/stacks',
    '/v1/schema/stacks/companies',
    '/v1/schema/attributes',
    '/v1/schema/consent-types',
    '/v1/schema',
  ],
]

/** Reads a path with a token, whose role may leave fields out. */
async function fetchText(path: string, token: string, tag?: string) {
  const headers = { Authorization: `Bearer ${token}`, ...(tag !== undefined && { 'If-None-Match': tag }) }
  const response = await fetch(`${service.address}${path}`, { headers })
  return { status: response.status, tag: response.headers.get('ETag'), text: await response.text() }
}

describe('304', () => {
  it('is the response if and only if the body is as it was, whatever was written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async steps => {
        await shop.renew('referrer', 'friends', 'employer', {
          key: 'news',
          channels: [{ channel: 'email', is_default: true }],
        })
        for (const external_id of ['ada', 'bob'])
          await ok('POST', '/v1/people', {
            external_id,
            attribute_values: { employer: 'acme', friends: ['bob', 'eve'] },
          })
        const people = { read: ['first_name', 'attribute_values'], write: [] }
        await ok('POST', '/v1/roles', { key: 'desk', scopes: allScopes.split(' '), fields: { people } })
        const request = { scopes: allScopes.split(' '), name: 'desk', expires_in: 3_600, role: 'desk' }
        const { token } = await ok('POST', '/v1/tokens', request)
        const callers = [shop.token, token]
        const known = new Map<string, { tag: string; text: string }>()
        const check = async () => {
          for (const [index, by] of callers.entries())
            for (const path of paths) {
              const key = `${index} ${path}`
              const last = known.get(key)
              const asked = await fetchText(path, by, last?.tag ?? '"0"')
              const { status, text } = await fetchText(path, by)
              expect([key, asked.status === 304]).toEqual([key, status === 200 && last?.text === text])
              if (asked.status === 200) known.set(key, { tag: asked.tag!, text })
            }
        }
        await check()
        for (const [method, path, body] of steps) {
          await send(method, path, body)
          await check()
        }
      }),
      someRuns(20),
    )
  }, 120_000)
})
