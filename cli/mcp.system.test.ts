import { beforeEach, describe, expect, it } from 'vitest'
import { searchFollower } from '../src/entities/indexes/search-index.ts'
import { connectByStdio } from '../test/support/assistant.ts'
import { startCommand } from '../test/support/command.ts'
import { follow } from '../test/support/followers.ts'
import { useOwnService } from '../test/support/service.ts'
import { useShop } from '../test/support/shop.ts'

const service = useOwnService()
const shop = useShop(service, 'orders', 'buyer', 'city')

beforeEach(async () => {
  await shop.ok('POST', '/v1/people', { external_id: 'ada', first_name: 'Ada', attribute_values: { city: 'Rome' } })
  await shop.ok('POST', '/v1/stacks/orders', { external_id: 'o1', attribute_values: { buyer: 'ada' } })
})

const environment = (token = shop.token) => ({ KITH_URL: service.address, KITH_TOKEN: token })

describe('kith mcp', () => {
  it.each(['legacy', 'auto'] as const)('serves the tools of the service to an assistant of era %s', async mode => {
    const assistant = await connectByStdio(environment(), [], mode)
    const { tools } = await assistant.client.listTools()
    expect(tools.map(({ name }) => name)).not.toContain('patch')
    expect(tools).toHaveLength(10)
    await assistant.call('search', { text: 'ada' })
    await follow(service.db, [searchFollower()])
    const rome = { 'attribute_values.city': 'Rome' }
    const answers: Record<string, [given: Record<string, unknown>, data: object]> = {
      describe_schema: [{}, { owners: [{ owner: 'people' }, { owner: 'orders' }] }],
      search: [{ text: 'ada' }, { items: [{ owner: 'people', external_id: 'ada', label: 'Ada' }] }],
      get: [{ owner: 'people', external_ids: ['ada'] }, { items: [{ first_name: 'Ada' }] }],
      filter: [{ owner: 'people', filter: rome }, { items: [{ external_id: 'ada', label: 'Ada' }] }],
      count: [{ owner: 'people', filter: rome }, { count: 1 }],
      aggregate: [
        { owner: 'people', group_by: ['attribute_values.city'] },
        { groups: [{ by: ['Rome'], measures: [1] }] },
      ],
      related: [{ owner: 'people', external_id: 'ada', target: 'orders' }, { items: [{ external_id: 'o1' }] }],
      history: [{ owner: 'people', external_id: 'ada' }, { items: [{ operation: 'create' }] }],
      may_contact: [
        { external_ids: ['ada'], consent_type_id: 1, channel: 'email' },
        { items: [{ external_id: 'ada', allowed: false }] },
      ],
      changes: [{ stack: ['orders'] }, { items: [{ subject: 'record' }] }],
    }
    for (const [tool, [given, data]] of Object.entries(answers))
      expect([tool, await assistant.call(tool, given)]).toMatchObject([tool, { isError: false, data }])
  })

  it('returns the refusals of the service, and what to do if it cannot be reached', async () => {
    const reader = await connectByStdio(environment(await service.tokenFor(shop.key, 'records:read')))
    expect(await reader.call('get', { owner: 'people', external_ids: ['ada'] })).toMatchObject({
      isError: true,
      data: { error: 'forbidden' },
    })
    const lost = await connectByStdio({ KITH_URL: 'http://127.0.0.1:1', KITH_TOKEN: shop.token })
    expect(await lost.call('count', { owner: 'people', filter: {} })).toMatchObject({
      isError: true,
      text: expect.stringContaining('cannot be reached'),
    })
  })

  it('writes with --write after a dry run, by the confirmation of the same process alone', async () => {
    const [one, other] = [
      await connectByStdio(environment(), ['--write']),
      await connectByStdio(environment(), ['--write']),
    ]
    const patch = { owner: 'people', external_id: 'ada', changes: { first_name: 'Augusta' } }
    const dry = await one.call('patch', patch)
    const confirm = /"confirm": "([^"]+)"/.exec(dry.note)![1]!
    expect(await other.call('patch', { ...patch, confirm })).toMatchObject({
      isError: true,
      data: { details: [{ path: '/confirm' }] },
    })
    expect((await shop.ok('GET', '/v1/people/ada')).first_name).toBe('Ada')
    const head = await shop.head()
    for (let n = 0; n < 2; n++) expect((await one.call('patch', { ...patch, confirm })).data.stored).toBe(true)
    expect((await shop.ok('GET', '/v1/people/ada')).first_name).toBe('Augusta')
    expect(await shop.head()).toBe(head + 1)
    const create = { owner: 'orders', values: { external_id: 'o2', attribute_values: { buyer: 'ada' } } }
    const confirmCreate = /"confirm": "([^"]+)"/.exec((await one.call('create', create)).note)![1]!
    expect((await one.call('create', { ...create, confirm: confirmCreate })).data).toMatchObject({ external_id: 'o2' })
    expect(await shop.ok('GET', '/v1/stacks/orders/o2')).toMatchObject({ attribute_values: { buyer: 'ada' } })
  })

  it('ends when its input ends, and exits with 2 on wrong usage', async () => {
    const { child, ended } = startCommand(['mcp'], environment())
    child.stdin.end()
    expect(await ended).toEqual({ code: 0, stdout: '', stderr: '' })
    for (const words of [['extra'], ['--token-file', '-']]) {
      const wrong = startCommand(['mcp', ...words], environment())
      wrong.child.stdin.end()
      expect(await wrong.ended).toMatchObject({ code: 2, stdout: '' })
    }
  })
})
