import { beforeAll, describe, expect, it } from 'vitest'
import { allScopes, type Send, useService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const service = useService()
const shop = useSharedShop(service, 'referrer', 'employer', 'city', 'score', {
  key: 'shoe_size',
  owner: 'people',
  type: 'number',
  indexed: true,
})
const { ok, send } = shop

const messagesOf = async (method: string, path: string, body?: unknown, by: Send = send): Promise<string[]> => {
  const reply = await by(method, path, body)
  return (reply.body.details ?? reply.body.data?.warnings ?? []).map(({ message }: { message: string }) => message)
}
const meaning = (name: string) =>
  expect.stringMatching(new RegExp(`: did you mean "${name.replaceAll(/[.$*+?{}]/g, '\\$&')}"\\?$`))
const meaningNothing = expect.not.stringContaining('did you mean')

describe('a refusal names what was meant', () => {
  it.each<[what: string, method: string, path: string, body: unknown, meant: string]>([
    ['a path', 'GET', '/v1/poeple/ada', undefined, '/v1/people/{external_id}'],
    ['a path of a method', 'POST', '/v1/poeple/exprot', undefined, '/v1/people/export'],
    ['a path with HEAD', 'GET', '/v1/chnages?after=1', undefined, '/v1/changes'],
    ['a member', 'POST', '/v1/people', { frist_name: 'Ada' }, 'first_name'],
    [
      'a member within',
      'POST',
      '/v1/people',
      { consents: [{ consent_type: 1, channel: 'email', statee: true }] },
      'state',
    ],
    ['a member of an element', 'POST', '/v1/people/list', { cursor_configuration: { sise: 5 } }, 'size'],
    ['a parameter of a query', 'GET', '/v1/changes?afer=1', undefined, 'after'],
    ['a member as a query', 'POST', '/v1/people?frist_name=Ada', undefined, 'first_name'],
    ['a field of a filter', 'POST', '/v1/people/filter', { filter: { emial: 'x' } }, 'email'],
    [
      'an attribute without its prefix',
      'POST',
      '/v1/people/filter',
      { filter: { shoe_sise: 1 } },
      'attribute_values.shoe_size',
    ],
    [
      'an undeclared key',
      'POST',
      '/v1/people/filter',
      { filter: { 'attribute_values.shoe_sise': 1 } },
      'attribute_values.shoe_size',
    ],
    ['an operator', 'POST', '/v1/people/filter', { filter: { email: { $exist: true } } }, '$exists'],
    ['a combination', 'POST', '/v1/people/filter', { filter: { $ant: [] } }, '$and'],
    ['a field to sort by', 'POST', '/v1/people/list', { sort: { field: 'lastname' } }, 'last_name'],
    [
      'an attribute to sort by',
      'POST',
      '/v1/people/list',
      { sort: { field: 'attribute_values.scroe' } },
      'attribute_values.score',
    ],
    ['a field to show', 'POST', '/v1/people/list', { fields: ['langauge'] }, 'language'],
    ['a relationship to include', 'POST', '/v1/people/list', { include: ['employr'] }, 'employer'],
    ['a field to group by', 'POST', '/v1/people/aggregate', { group_by: ['langauge'] }, 'language'],
  ])('%s', async (_, method, path, body, meant) => {
    expect(await messagesOf(method, path, body)).toContainEqual(meaning(meant))
  })

  it.each<[what: string, method: string, path: string, body?: unknown]>([
    ['is near to nothing', 'POST', '/v1/people', { shoe: 1 }],
    ['is near to two', 'POST', '/v1/people/filter', { filter: { email: { $xt: 1 } } }],
    ['has other segments', 'GET', '/v1/people/ada/x/y/z'],
    ['is one of another method', 'DELETE', '/v1/poeple/list/x'],
    ['is of 8 kB', 'GET', `/v1/${'x'.repeat(8_000)}`],
    ['has thousands of segments', 'GET', `/v1/${'/'.repeat(8_000)}`],
  ])('but not where the name %s', async (_, method, path, body) => {
    const messages = await messagesOf(method, path, body)
    expect(messages.length).toBeGreaterThan(0)
    for (const message of messages) expect(message).toEqual(meaningNothing)
  })

  it('leaves a wrong method at 405', async () => {
    expect((await send('DELETE', '/v1/people')).status).toBe(405)
    expect((await send('PUT', '/v1/changes')).status).toBe(405)
  })

  it('only three times in a request', async () => {
    const body = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`first_name${index}`, 'x']))
    const messages = await messagesOf('POST', '/v1/people', body)
    expect(messages.filter(message => message.includes('did you mean'))).toHaveLength(3)
    expect(messages).toHaveLength(9)
  })
})

describe('a refusal names nothing that the caller may not see', () => {
  let desk: Send
  let peopleOnly: Send
  beforeAll(async () => {
    await ok('POST', '/v1/schema/attributes', { owner: 'companies', key: 'revenue', type: 'number' })
    const fields = { people: { read: ['first_name', 'attribute_values.city', 'attribute_values.employer'], write: [] } }
    await ok('POST', '/v1/roles', { key: 'desk', scopes: allScopes.split(' '), fields })
    const request = { scopes: allScopes.split(' '), name: 'desk', expires_in: 3_600, role: 'desk' }
    desk = rawSender((await ok('POST', '/v1/tokens', request)).token)
    peopleOnly = service.sender(await service.tokenFor(shop.key, 'people:read'))
  })

  /** The contract is not checked, because responses to a role without some fields do not meet it. */
  const rawSender =
    (token: string): Send =>
    async (method, path, body) => {
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
      const response = await fetch(`${service.address}${path}`, { method, headers, body: JSON.stringify(body) })
      return { status: response.status, headers: response.headers, body: (await response.json()) as never }
    }

  it('not the fields that its role closes', async () => {
    const filters = [{ emial: 'x' }, { shoe_sise: 1 }, { scroe: 1 }, { 'attribute_values.shoe_sise': 1 }]
    for (const filter of filters)
      expect(JSON.stringify((await desk('POST', '/v1/people/filter', { filter })).body)).not.toContain('did you mean')
    for (const body of [{ sort: { field: 'attribute_values.scroe' } }, { include: ['referer'] }])
      expect(JSON.stringify((await desk('POST', '/v1/people/list', body)).body)).not.toContain('did you mean')
    expect(await messagesOf('POST', '/v1/people/filter', { filter: { frist_name: 'x' } }, desk)).toEqual([
      meaning('first_name'),
    ])
    expect(await messagesOf('POST', '/v1/people/list', { include: ['employr'] }, desk)).toEqual([meaning('employer')])
  })

  it('not the attributes of a stack whose scope its token lacks, nor of another organization', async () => {
    const filter = { 'attribute_values.employer': { $some: { revenu: 1 } } }
    expect(await messagesOf('POST', '/v1/people/filter', { filter }, peopleOnly)).toEqual([meaningNothing])
    const other = await service.organization()
    expect(await messagesOf('POST', '/v1/people/filter', { filter: { shoe_sise: 1 } }, other.send)).toEqual([
      meaningNothing,
    ])
  })
})
