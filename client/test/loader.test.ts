import { describe, expect, it } from 'vitest'
import { scriptedClient, success } from './scripted-fetch.ts'

const notFound = Response.json(
  { status: 'Error', error: 'not_found', message: 'There is no such person.' },
  { status: 404 },
)
const person = (external_id: string) => ({ id: `id of ${external_id}`, external_id })

describe('a client with a loader', () => {
  it('joins the reads of one turn into one request, and gives each its entity', async () => {
    const { client, sent } = scriptedClient([success({ items: [person('ada'), person('bob')] })], { loader: true })
    const people = await Promise.all([client.people.get('ada'), client.people.get('bob')])
    expect(people.map(({ external_id }) => external_id)).toEqual(['ada', 'bob'])
    expect(sent.map(({ url, body }) => [url, body])).toEqual([
      ['https://kith.test/v1/people/get', { external_ids: ['ada', 'bob'] }],
    ])
  })

  it('refuses the read of an entity that does not exist, and no other', async () => {
    const { client } = scriptedClient([success({ items: [null, person('bob')] }), notFound], { loader: true })
    const [nobody, bob] = await Promise.allSettled([client.people.get('nobody'), client.people.get('bob')])
    expect(nobody).toMatchObject({ status: 'rejected', reason: { code: 'not_found' } })
    expect(bob).toMatchObject({ status: 'fulfilled', value: { external_id: 'bob' } })
  })

  it('sends a read alone that has options, or has none beside it', async () => {
    const steps = [success(person('ada')), success(person('bob')), success(person('eve'))]
    const { client, sent } = scriptedClient(steps, { loader: true })
    await Promise.all([client.people.get('ada', { version: 1 }), client.people.get('bob', { labels: true })])
    await client.people.get({ id: 'eve' })
    expect(sent.map(({ method, url }) => [method, url])).toEqual([
      ['GET', 'https://kith.test/v1/people/ada?version=1'],
      ['GET', 'https://kith.test/v1/people/bob?labels=true'],
      ['GET', 'https://kith.test/v1/people/internal/eve'],
    ])
  })

  it('joins the reads of a stack, also through several objects of it', async () => {
    const { client, sent } = scriptedClient([success({ items: [person('o-1'), person('o-2')] })], { loader: true })
    await Promise.all([client.stack('orders').get('o-1'), client.stack('orders').get('o-2')])
    expect(sent.map(({ url }) => url)).toEqual(['https://kith.test/v1/stacks/orders/get'])
  })

  it('refuses an identifier that none can have, and no other', async () => {
    const invalid = Response.json({ status: 'Error', error: 'invalid_parameter', message: 'No.' }, { status: 400 })
    const { client } = scriptedClient([invalid, success(person('ada'))], { loader: true })
    const [ada, none] = await Promise.allSettled([client.people.get('ada'), client.people.get('')])
    expect(ada).toMatchObject({ status: 'fulfilled', value: { external_id: 'ada' } })
    expect(none).toMatchObject({ status: 'rejected', reason: expect.any(TypeError) })
  })

  it('rejects all reads of a request that fails', async () => {
    const refused = Response.json({ status: 'Error', error: 'forbidden', message: 'No.' }, { status: 403 })
    const { client } = scriptedClient([refused], { loader: true })
    const reads = await Promise.allSettled([client.people.get('ada'), client.people.get('bob')])
    expect(reads.map(read => read.status === 'rejected' && read.reason.code)).toEqual(['forbidden', 'forbidden'])
  })
})
