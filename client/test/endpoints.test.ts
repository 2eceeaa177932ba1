import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { version } from '../../src/process/version.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { createClient, isKithError, KithConnectionError, writable } from '../index.ts'

const service = useService()
const organization = useShop(service, 'buyer')
const { client } = organization

const refusalOf = (call: Promise<unknown>) =>
  call.then(
    () => 'no refusal',
    error => (isKithError(error) ? `${error.status} ${error.code}` : error),
  )

it('distinguishes an unknown endpoint, an unknown stack and a missing person', async () => {
  const missing = (call: Promise<unknown>) =>
    call.then(
      () => null,
      error => [error.code, error.missing],
    )
  expect(await missing(client.people.get('nobody'))).toEqual(['not_found', 'entity'])
  expect(await missing(client.people.patch('nobody', {}))).toEqual(['not_found', 'entity'])
  expect(await missing(client.stack('nothing').get('x'))).toEqual(['not_found', 'stack'])
  const astray = createClient({ url: `${service.address}/api`, token: organization.token })
  const error = await astray.people.get('ada').catch(each => each)
  expect([error.code, error.missing]).toEqual(['not_found', 'address'])
  expect(error.message).toBe('There is no such address. Check the url of the client.')
})

describe('people', () => {
  it('are created, read, patched, replaced and deleted by both identifiers', async () => {
    const created = await client.people.create({
      external_id: 'a/b?ä',
      first_name: ' Ada ',
      attribute_values: { x: 1 },
    })
    expect(created).toMatchObject({ first_name: 'Ada', version: 1, attribute_values: { x: 1 }, state: 'active' })
    expect(await client.people.get('a/b?ä')).toEqual(created)
    expect(await client.people.get({ id: created.id })).toEqual(created)
    expect(await client.people.patch('a/b?ä', { last_name: 'L' })).toBe(true)
    expect(await client.people.patch({ id: created.id }, { attribute_values: { y: 2 } })).toBe(true)
    expect(await client.people.get('a/b?ä')).toMatchObject({ last_name: 'L', attribute_values: { x: 1, y: 2 } })
    expect(await client.people.replace('a/b?ä', { first_name: 'B' })).toBe(true)
    expect(await client.people.replace({ id: created.id }, { language: 'en' }, { representation: true })).toMatchObject(
      {
        first_name: null,
        language: 'en',
        version: 5,
      },
    )
    expect(await client.people.delete({ id: created.id })).toBe(true)
    expect(await refusalOf(client.people.delete('a/b?ä'))).toBe('404 not_found')
  })

  it('are upserted, and written in batches', async () => {
    expect(await client.people.upsert({ external_id: 'ada', first_name: 'Ada' })).toMatchObject({ version: 1 })
    expect(await client.people.upsert({ external_id: 'ada', last_name: 'L' })).toMatchObject({ first_name: 'Ada' })
    const { items, failed } = await client.people.batch([
      { op: 'create', body: { external_id: 'bob' } },
      { op: 'patch', external_id: 'ada', body: { language: 'en' }, if_match: 2 },
      { op: 'patch', external_id: 'ada', body: { language: 'fr' }, if_match: 2 },
      { op: 'delete', external_id: 'nobody' },
    ])
    expect(items.map(item => item.error ?? item.status)).toEqual([201, 200, 'invalid_parameter', 'not_found'])
    expect(failed).toBe(2)
    const atomic = client.people.batch(
      [
        { op: 'delete', external_id: 'bob' },
        { op: 'delete', external_id: 'x' },
      ],
      {
        atomic: true,
      },
    )
    expect(await refusalOf(atomic)).toBe('404 not_found')
    expect(await client.people.get('bob')).toMatchObject({ version: 1 })
  })

  it('that are missing cause not_found, also where the status is 500', async () => {
    expect(await refusalOf(client.people.get('nobody'))).toBe('404 not_found')
    expect(await refusalOf(client.people.patch('nobody', {}))).toBe('500 not_found')
  })
})

describe('the options of a call', () => {
  it('ifMatch restricts a write to a version', async () => {
    const { version } = await client.people.create({ external_id: 'ada' })
    expect(await client.people.patch('ada', { first_name: 'Ada' }, { ifMatch: version })).toBe(true)
    expect(await refusalOf(client.people.patch('ada', {}, { ifMatch: version }))).toBe('412 invalid_parameter')
    expect(await refusalOf(client.people.delete('ada', { ifMatch: version }))).toBe('412 invalid_parameter')
    const why = { reason: 'Request of 2026-01-01' }
    for (const dryRun of [true, false])
      expect(await refusalOf(client.people.erase('ada', why, { ifMatch: version, dryRun }))).toBe(
        '412 invalid_parameter',
      )
    expect(await client.people.delete('ada', { ifMatch: '*' })).toBe(true)
  })

  it('representation returns the updated entity', async () => {
    const { id } = await client.people.create({ external_id: 'ada' })
    const patched = await client.people.patch('ada', { first_name: 'Ada' }, { representation: true })
    expect(patched).toEqual(await client.people.get({ id }))
  })

  it('references: strict creates no placeholder', async () => {
    const body = { external_id: 'o', attribute_values: { buyer: 'nobody' } }
    const orders = client.stack('orders')
    expect(await refusalOf(orders.create(body, { references: 'strict' }))).toBe('400 invalid_parameter')
    expect(await refusalOf(client.people.get('nobody'))).toBe('404 not_found')
    expect((await orders.create(body)).attribute_values).toEqual({ buyer: 'nobody' })
    expect(await client.people.get('nobody')).toMatchObject({ state: 'placeholder' })
  })

  it('requestId becomes the request id of the service', async () => {
    const error = await client.people.get('nobody', { requestId: 'my-request_1' }).catch(each => each)
    expect(error.request_id).toBe('my-request_1')
  })
})

it('an error has the path of every invalid value', async () => {
  const error = await client.people.create({ email: 'x', language: '!' }).catch(each => each)
  expect(error.details.map(({ path }: { path: string }) => path)).toEqual(['/email', '/language'])
})

it('records have the same endpoints as people, within their stack', async () => {
  const orders = client.stack('orders')
  const { record_id } = await orders.create({ external_id: 'o', attribute_values: { total: 10 } })
  expect(await orders.patch({ id: record_id }, { attribute_values: { note: 'x' } })).toBe(true)
  expect(await orders.get({ id: record_id })).toMatchObject({ stack_key: 'orders', attribute_values: { total: 10 } })
  expect(await orders.replace('o', {}, { representation: true })).toMatchObject({ attribute_values: {} })
  expect((await orders.upsert({ external_id: 'o', attribute_values: { total: 1 } })).record_id).toBe(record_id)
  const batch = await orders.batch([{ op: 'delete', record_id }])
  expect(batch.items).toEqual([{ index: 0, status: 200, id: record_id, external_id: 'o' }])
  expect(await refusalOf(client.stack('nothing').get('o'))).toBe('404 not_found')
})

it('lists, filters and related reads find all entities over several pages', async () => {
  const orders = Array.from({ length: 7 }, (_, index) => `o-${index}`)
  for (const external_id of orders)
    await client
      .stack('orders')
      .create({ external_id, attribute_values: { buyer: 'ada', total: orders.indexOf(external_id) } })
  const namesOf = async (listing: AsyncIterable<{ external_id: string | null }>) => {
    const names: (string | null)[] = []
    for await (const { external_id } of listing) names.push(external_id)
    return names
  }
  const stack = client.stack('orders')
  expect(await namesOf(stack.list({ size: 2 }))).toEqual(orders.toReversed())
  expect(await namesOf(stack.list({ size: 7, order: 'asc' }))).toEqual(orders)
  const large = { 'attribute_values.total': { $gte: 2 }, 'attribute_values.buyer': { $some: { external_id: 'ada' } } }
  expect(await namesOf(stack.filter(large, { size: 3, order: 'asc' }))).toEqual(orders.slice(2))
  const incoming = { target: 'orders', direction: 'incoming', size: 3, order: 'asc' } as const
  expect(await namesOf(client.people.related('ada', incoming))).toEqual(orders)
  const { id } = await client.people.get('ada')
  expect(await namesOf(client.people.related({ id }, incoming))).toEqual(orders)
  expect(await namesOf(client.people.list())).toEqual(['ada'])
  expect(await refusalOf(client.people.filter({ $not: { state: 'active' } }, { size: 501 }).page())).toBe(
    '400 invalid_parameter',
  )
})

it('a filter by a key that no entity has causes a warning, or is refused with strict', async () => {
  const misspelt = { 'attribute_values.buyr': { $exists: false } }
  const { items, warnings } = await client.stack('orders').filter(misspelt).page()
  expect({ items, paths: warnings?.map(({ path }) => path) }).toEqual({
    items: [],
    paths: ['/filter/attribute_values.buyr'],
  })
  const strict = client.stack('orders').filter(misspelt, { strict: true })
  expect(await refusalOf(strict.page())).toBe('400 invalid_parameter')
})

it('definitions are created, listed, read and changed', async () => {
  const { stacks, attributes, consentTypes } = client.schema
  expect(await stacks.patch('orders', { name: 'Orders' })).toMatchObject({ key: 'orders', name: 'Orders' })
  expect(await stacks.get('orders')).toMatchObject({ kind: 'item', name: 'Orders' })
  const age = await attributes.create({ key: 'age', owner: 'people', type: 'number' })
  expect(await attributes.patch(age.id, { state: 'archived' })).toMatchObject({ state: 'archived' })
  expect(await attributes.get(age.id)).toMatchObject({ key: 'age', owner: 'people', cardinality: 'one' })
  const surveys = await consentTypes.create({ key: 'surveys', channels: [{ channel: 'sms' }] })
  expect(await consentTypes.patch(surveys.id, { name: 'Surveys' })).toMatchObject({ name: 'Surveys' })
  expect(await consentTypes.get(surveys.id)).toMatchObject({ key: 'surveys', mandatory: false })
  expect(await client.schema.get()).toEqual({
    stacks: await stacks.list().all(),
    attributes: await attributes.list().all(),
    consent_types: await consentTypes.list().all(),
  })
})

it('health and readiness need no token', async () => {
  const stranger = createClient({ url: service.address, token: 'none' })
  expect(await stranger.health()).toEqual({ healthy: true, version })
  expect(await stranger.ready()).toEqual({ ready: true })
  expect(await refusalOf(stranger.schema.get())).toBe('401 unauthorized')
})

it('an unreachable service causes a KithConnectionError after all retries', async () => {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  await once(listener.close(), 'close')
  const gone = createClient({ url: `http://127.0.0.1:${port}`, token: organization.token, sleep: async () => {} })
  const error = await gone.people.create({}).catch(each => each)
  expect(error).toBeInstanceOf(KithConnectionError)
  expect(error.attempts).toBe(3)
})

describe('writing back what was read', () => {
  it('keeps the consent answers and defaults of a person', async () => {
    const surveys = await client.schema.consentTypes.create({ key: 'surveys', channels: [{ channel: 'sms' }] })
    await client.schema.consentTypes.create({ key: 'bills', channels: [{ channel: 'sms' }], mandatory: true })
    const consents = [{ consent_type_id: surveys.id, channel: 'sms' as const, state: false }]
    const read = await client.people.create({ external_id: 'ada', email: 'a@example.org', consents })
    expect(writable(read).consents).toEqual([{ ...consents[0], collected_at: read.updated_at }])
    const replaced = await client.people.replace('ada', writable(read), { representation: true })
    const timeless = (person: typeof read) => ({ ...person, version: 0, updated_at: '' })
    expect(timeless(replaced)).toEqual(timeless(read))
  })

  it('keeps the evidence of consent answers, and leaves out a grant that waits for its confirmation', async () => {
    const channels = [{ channel: 'email' as const, double_opt_in: true }, { channel: 'sms' as const }]
    const { id } = await client.schema.consentTypes.create({ key: 'letters', channels })
    await client.schema.consentTypes.addText(id, { language: 'en', text: 'Yes.' })
    const answer = { consent_type_id: id, channel: 'sms' as const, state: true, text_version: 1 }
    const given = { ...answer, method: 'paper' as const, collected_at: '2020-01-01T00:00:00.000Z' }
    const consents = [given, { consent_type_id: id, channel: 'email' as const, state: true }]
    const read = await client.people.create({ external_id: 'bob', consents })
    expect(writable(read).consents).toEqual([given])
    const replaced = await client.people.replace('bob', writable(read), { representation: true })
    expect(replaced.consents).toEqual(read.consents)
  })

  it('does not change a record', async () => {
    const orders = client.stack('orders')
    const read = await orders.create({ external_id: 'o', attribute_values: { total: 1, buyer: 'ada', list: [null] } })
    expect(await orders.replace('o', writable(read), { representation: true })).toEqual(read)
  })

  it('leaves out what an item of a list has beside the entity', async () => {
    const orders = client.stack('orders')
    const person = await client.people.create({ external_id: 'ada' })
    const order = await orders.create({ external_id: 'o', attribute_values: { buyer: 'ada' } })
    const options = { include: ['buyer'], labels: true } as const
    const [read] = (await orders.filter({ external_id: 'o' }, options).page()).items
    expect(read?.included.buyer).not.toBeNull()
    expect(await orders.replace('o', writable(read!), { representation: true })).toEqual(order)
    const { consents: _, ...closed } = person
    expect(writable(closed as typeof person)).toMatchObject({ external_id: 'ada', consents: [] })
  })

  it('keeps a link to an entity without an external identifier', async () => {
    const orders = client.stack('orders')
    await orders.create({ external_id: 'o', attribute_values: { buyer: 'ada' } })
    const { id } = await client.people.patch('ada', { external_id: null }, { representation: true })
    const read = await orders.get('o')
    expect(read.attribute_values).toEqual({ buyer: { id } })
    expect(await orders.replace('o', writable(read), { representation: true })).toEqual(read)
    const incoming = await service.sql('select 1 from links where organization_id = $1', [organization.id])
    expect(incoming).toHaveLength(1)
  })
})
