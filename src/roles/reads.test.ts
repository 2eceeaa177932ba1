import { beforeAll, describe, expect, it } from 'vitest'
import { allScopes, useService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useSharedShop(service, 'referrer', 'friends', 'employer', 'buyer', 'city', 'score')
const { send, ok } = shop

const scopes = allScopes.split(' ')
const oddKeys = ['a "quoted" \\ key\n\u0001\u2028 ü 𝄞', '7', '{', 'key\\']
const odd = Object.fromEntries(oddKeys.map(key => [key, { [key]: [key, { '}': '","city":"x' }] }]))
const keysOf = (...keys: string[]) => keys.map(key => `attribute_values.${key}`)
const roles = {
  few: {
    people: { read: ['first_name', ...keysOf('city', 'friends', 'employer')] },
    companies: { read: keysOf('size') },
  },
  odd: { people: { read: ['consents', ...keysOf(...oddKeys, 'referrer')] }, companies: { read: [] } },
  values: { people: { read: ['attribute_values'] }, companies: { read: [] } },
  none: { people: { read: [] }, companies: { read: [] } },
} as const
type RoleKey = keyof typeof roles

/** The attribute values that a role opens by field names. */
function opened(values: Record<string, unknown>, names: readonly string[]) {
  if (names.includes('*') || names.includes('attribute_values')) return values
  return Object.fromEntries(Object.entries(values).filter(([key]) => names.includes(`attribute_values.${key}`)))
}

const acme = { size: 7, secret: 'of acme' }

type Answer = { status: number; text: string }
const tokens = new Map<RoleKey, string>()

/**
 * Sends a request with a role, without comparing the response with the document, which requires all members of an
 * entity.
 */
async function ask(role: RoleKey, method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await fetch(`${service.address}${path}`, {
    method,
    headers: { Authorization: `Bearer ${tokens.get(role)}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, text: await response.text() }
}

// biome-ignore lint/suspicious/noExplicitAny: tests read any field of a response
const dataOf = ({ status, text }: Answer): any => {
  expect([status, text]).toEqual([200, expect.any(String)])
  return JSON.parse(text).data
}

const giveRole = async (key: string, fields: unknown) => {
  await ok('POST', '/v1/roles', { key, scopes, fields })
  return (await ok('POST', '/v1/tokens', { scopes, role: key, name: `token of ${key}`, expires_in: 600 })).token
}

beforeAll(async () => {
  await ok('POST', '/v1/stacks/companies', { external_id: 'acme', attribute_values: acme })
  await ok('POST', '/v1/people', { external_id: 'bob' })
  await ok('POST', '/v1/people', {
    external_id: 'ada',
    first_name: 'Ada',
    last_name: 'Lovelace',
    attribute_values: { ...odd, city: 'Rome', score: 7, referrer: 'bob', friends: ['bob', 'eve'], employer: 'acme' },
  })
  await ok('POST', '/v1/people', { external_id: 'eva', attribute_values: { city: 'Bari', score: 1 } })
  for (const [key, fields] of Object.entries(roles)) tokens.set(key as RoleKey, await giveRole(key, fields))
})

describe.each(Object.keys(roles) as RoleKey[])('the role %s', role => {
  const { read } = roles[role].people as { read: readonly string[] }

  it('shows of an entity what its fields name, alone, in pages, by name, in an export and beside others', async () => {
    for (const links of [undefined, 'id'] as const) {
      const whole = new Map<string, Record<string, unknown>>()
      for (const name of ['ada', 'bob', 'eva'])
        whole.set(name, await ok('GET', `/v1/people/${name}${links ? '?links=id' : ''}`))
      const include = opened({ employer: 0 }, read).employer === 0 ? ['employer'] : undefined
      const { items } = dataOf(await ask(role, 'POST', '/v1/people/list', { links, include }))
      const named = dataOf(await ask(role, 'POST', '/v1/people/get', { external_ids: ['ada', 'bob', 'eva'], links }))
      const lines = (await ask(role, 'POST', '/v1/people/export', { links })).text.trim().split('\n')
      for (const [name, entity] of whole) {
        const alone = dataOf(await ask(role, 'GET', `/v1/people/${name}${links ? '?links=id' : ''}`))
        const values = opened(entity.attribute_values as Record<string, unknown>, read)
        const isClosed = !read.some(field => field.startsWith('attribute_values'))
        expect(alone.attribute_values).toEqual(isClosed ? undefined : values)
        for (const member of ['id', 'external_id', 'state', 'version', 'created_at', 'updated_at'])
          expect(alone[member]).toEqual(entity[member])
        for (const member of ['first_name', 'last_name', 'consents'])
          expect(member in alone).toBe(read.includes(member))
        const isSame = ({ external_id }: { external_id: string }) => external_id === name
        const { included, ...listed } = items.find(isSame)
        expect([listed, named.items.find(isSame)]).toEqual([alone, alone])
        // A line has all values of the entity in one member, which may be empty.
        expect(lines.map(line => JSON.parse(line)).find(isSame)).toEqual({ attribute_values: {}, ...alone })
        if (name === 'ada' && include) {
          const values = opened(acme, roles[role].companies.read)
          expect(included.employer.attribute_values).toEqual(values)
        }
      }
    }
  })
})

describe('concurrent reads', () => {
  it('share a statement, and each shows what its own caller may read', async () => {
    const paths = ['ada', 'bob', 'eva'].map(name => `/v1/people/${name}`)
    const expected = new Map<string, unknown>()
    for (const path of paths) {
      expected.set(path, await ok('GET', path))
      for (const role of tokens.keys()) expected.set(role + path, dataOf(await ask(role, 'GET', path)))
    }
    const reads = Array.from({ length: 20 }, () =>
      paths.flatMap(path => [
        send('GET', path).then(({ body }) => [path, body.data]),
        ...tokens.keys().map(async role => [role + path, dataOf(await ask(role, 'GET', path))]),
      ]),
    )
    for (const [key, shown] of await Promise.all(reads.flat())) expect(shown).toEqual(expected.get(key))
  })

  it('show what a role opens at some moment during the request, while it and the definitions change', async () => {
    const fieldsOf = (name: string) => ({ people: { read: [name, ...keysOf('city')] } })
    const token = await giveRole('changing', fieldsOf('first_name'))
    const headers = { Authorization: `Bearer ${token}` }
    let current = 'first_name'
    let isOver = false
    // The number is odd during a change.
    let steps = 0
    const readOn = async () => {
      while (!isOver) {
        const [known, before] = [current, steps]
        const { data } = JSON.parse(await (await fetch(`${service.address}/v1/people/ada`, { headers })).text())
        const shown = ['first_name', 'last_name'].filter(name => name in data)
        expect([shown.length, Object.keys(data.attribute_values)]).toEqual([1, ['city']])
        if (before === steps && steps % 2 === 0) expect(shown).toEqual([known])
      }
    }
    const readers = Array.from({ length: 8 }, readOn)
    for (let round = 0; round < 24; round += 1) {
      const next = round % 2 === 0 ? 'last_name' : 'first_name'
      steps += 1
      await ok('PATCH', '/v1/roles/changing', { fields: fieldsOf(next) })
      current = next
      steps += 1
      if (round % 4 === 0)
        await ok('POST', '/v1/schema/attributes', { key: `new_${round}`, owner: 'people', type: 'text' })
    }
    isOver = true
    await Promise.all(readers)
  })
})
