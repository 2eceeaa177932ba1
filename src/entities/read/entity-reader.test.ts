import { beforeAll, expect, it } from 'vitest'
import { useService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const service = useService()
const channels = (['email', 'sms'] as const).map(channel => ({ channel }))
const shop = useSharedShop(
  service,
  ...(['referrer', 'friends', 'employer'] as const),
  { key: 'owner', owner: 'companies', type: 'person', cardinality: 'many' },
  { key: 'news', channels },
  { key: 'terms', channels, mandatory: true },
  { key: 'old', channels },
  { key: 'calls', channels, default_state: true },
)
beforeAll(async () => {
  const { send } = shop
  const answers = (await send('GET', '/v1/schema')).body.data.consent_types as { id: number; mandatory: boolean }[]
  const answerable = answers.filter(({ mandatory }) => !mandatory)
  const consents = answerable.map(({ id }, index) => ({ consent_type_id: id, channel: 'sms', state: index % 2 === 0 }))
  const odd = {
    text: 'a "quoted" \\ line\n\u0001\u2028 ü 𝄞',
    nested: { b: [1, null, { a: 1e-7 }], a: {} },
    '\\': '',
    '7': 7,
  }
  for (const body of [
    { external_id: 'plain' },
    {},
    {
      external_id: 'linked',
      attribute_values: { referrer: 'somebody', friends: ['plain', 'else'], employer: 'acme', ...odd },
    },
    { external_id: 'says "yes"', first_name: 'Ada ü', email: 'ada@example.org', email_consent: true, consents },
    { external_id: 'says no', date_of_birth: '1915-12-10', push_notification_consent: false, sms_consent: false },
  ])
    expect((await send('POST', '/v1/people', body)).body).toMatchObject({ status: 'Success' })
  await send('POST', '/v1/stacks/companies', { external_id: 'full', attribute_values: odd })
  await send('PATCH', '/v1/stacks/companies/full', { attribute_values: { owner: ['plain', 'says no'] } })
  // Reads include archived attributes until they are written, but not answers to an archived consent type.
  const declared = (await send('GET', '/v1/schema')).body.data.attributes as { id: number; key: string }[]
  const friends = declared.find(({ key }) => key === 'friends')!
  await send('PATCH', `/v1/schema/attributes/${friends.id}`, { state: 'archived' })
  await send('PATCH', `/v1/schema/consent-types/${answers.at(-2)!.id}`, { state: 'archived' })
})

it.each(['asc', 'desc'])('lists people as single reads return them: %s', async sorting_type => {
  const { send } = shop
  const list = await send('POST', '/v1/people/list', { sorting_type })
  const items = list.body.data.items as { id: string }[]
  expect(items).toHaveLength(7)
  const ids = items.map(({ id }) => id)
  expect(ids).toEqual(sorting_type === 'asc' ? ids.toSorted() : ids.toSorted().reverse())
  for (const item of items) expect(item).toEqual((await send('GET', `/v1/people/internal/${item.id}`)).body.data)
  expect(items.map(item => Object.keys(item))).toEqual(items.map(() => Object.keys(items[0]!)))
})

it('lists records as single reads return them', async () => {
  const { send } = shop
  const { items } = (await send('POST', '/v1/stacks/companies/list', {})).body.data
  expect(items).toHaveLength(2)
  for (const item of items)
    expect(item).toEqual((await send('GET', `/v1/stacks/companies/internal/${item.record_id}`)).body.data)
})

it('returns no consents if all consent types are archived', async () => {
  const { send } = await service.organization()
  await send('POST', '/v1/people', { external_id: 'ada', email_consent: true })
  const { consent_types } = (await send('GET', '/v1/schema')).body.data
  for (const { id } of consent_types)
    expect((await send('PATCH', `/v1/schema/consent-types/${id}`, { state: 'archived' })).status).toBe(200)
  const { data } = (await send('GET', '/v1/people/ada')).body
  expect(data).toMatchObject({ external_id: 'ada', consents: [] })
  expect((await send('POST', '/v1/people/list', {})).body.data).toEqual({ items: [data], has_more: false })
})

it('returns an empty list for an organization without people', async () => {
  const { send } = await service.organization()
  expect((await send('POST', '/v1/people/list', {})).body.data).toEqual({ items: [], has_more: false })
})

it('lists people with definitions that another process changed', async () => {
  const { send, id } = shop
  await send('POST', '/v1/people/list', {})
  await service.sql(
    `with head as (update change_heads set schema_version = schema_version + 1 where organization_id = $1)
     update consent_types set default_state = not default_state, version = 1000 where organization_id = $1`,
    [id],
  )
  const [last] = (await send('POST', '/v1/people/list', {})).body.data.items
  expect(last).toEqual((await send('GET', `/v1/people/internal/${last.id}`)).body.data)
})
