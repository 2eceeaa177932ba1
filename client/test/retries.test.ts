import { describe, expect, it } from 'vitest'
import { KithConnectionError } from '../index.ts'
import { networkError, refusal, type Step, scriptedClient, success } from './scripted-fetch.ts'

type Client = ReturnType<typeof scriptedClient>['client']
type Call = (client: Client) => Promise<unknown>

const repeatable: [string, Call][] = [
  ['get', client => client.people.get('ada')],
  ['list', client => client.people.list().page()],
  ['filter', client => client.people.filter({ state: 'active' }).page()],
  ['related', client => client.people.related('ada', { target: 'orders' }).page()],
  ['replace', client => client.people.replace('ada', {})],
  ['replaceById that renames', client => client.people.replaceById('1', { external_id: 'other' })],
  ['patch with a version', client => client.people.patch('ada', {}, { ifMatch: 3 })],
  ['upsert with a version', client => client.people.upsert({ external_id: 'ada' }, { ifMatch: 3 })],
  ['delete', client => client.people.delete('ada')],
  ['create', client => client.people.create({})],
  ['create with a key of its own', client => client.people.create({}, { idempotencyKey: 'k' })],
  ['upsert', client => client.people.upsert({ external_id: 'ada' })],
  ['batch', client => client.people.batch([])],
  ['patch with a key', client => client.people.patch('ada', {}, { idempotencyKey: 'k' })],
  ['create of a definition', client => client.schema.stacks.create({ key: 'a', kind: 'item' })],
  [
    'replace that renames with a key',
    client => client.people.replace('ada', { external_id: 'b' }, { idempotencyKey: 'k' }),
  ],
  ['patch of a definition', client => client.schema.attributes.patch(1, {})],
]

const unrepeatable: [string, Call][] = [
  ['patch', client => client.people.patch('ada', {})],
  ['patch of any version', client => client.people.patch('ada', {}, { ifMatch: '*' })],
  ['replace that renames', client => client.people.replace('ada', { external_id: 'other' })],
]

const nothingDone: [string, () => Step][] = [
  ['429', () => refusal('rate_limit_exceeded', 429)],
  ['a key that is still running', () => refusal('invalid_parameter', 409)],
  ['429 of a proxy', () => new Response('slow down', { status: 429 })],
  ['nobody listening', () => networkError('ECONNREFUSED')],
  ['no such host', () => networkError('ENOTFOUND')],
  [
    'nobody listening at any address',
    () => new TypeError('fetch failed', { cause: new AggregateError([networkError('ECONNREFUSED')]) }),
  ],
]

const perhapsDone: [string, () => Step][] = [
  ['503', () => refusal('operation_failed', 503)],
  ['502 of a proxy', () => new Response('<h1>bad gateway</h1>', { status: 502 })],
  ['504 of a proxy', () => new Response('', { status: 504 })],
  ['a broken connection', () => networkError('ECONNRESET')],
  ['a network error that says nothing', () => new TypeError('Failed to fetch')],
  ['silence', () => 'silence'],
]

const inDoubt = (): Step =>
  Response.json({ error: 'operation_failed', message: 'It may have been done.', outcome: 'unknown' }, { status: 503 })

/** Without an Idempotency-Key. */
const unkeyed = [...repeatable, ...unrepeatable].filter(
  ([name]) => /^(replace|patch|delete)/.test(name) && !name.includes('key'),
)
const keyed = repeatable.filter(([name]) => /^(create|upsert|batch)/.test(name) || name.includes('key'))

const final: [string, () => Step][] = [
  ['400', () => refusal('invalid_parameter', 400)],
  ['a name that is taken', () => refusal('duplicate_entry', 409)],
  ['a key of another body', () => refusal('invalid_parameter', 422)],
  ['a missing person', () => refusal('not_found', 500)],
  ['a fault of the service', () => refusal('operation_failed', 500)],
  ["the service's own time limit", () => refusal('operation_failed', 504)],
  ['a page of somebody else', () => new Response('<h1>hello</h1>')],
]

const patience = { timeoutMs: 20 }
const crossed = (calls: [string, Call][], steps: [string, () => Step][]) =>
  calls.flatMap(([name, call]) => steps.map(([ending, step]) => [name, ending, call, step] as const))

describe('a request is sent again', () => {
  it.each([...crossed(repeatable, [...nothingDone, ...perhapsDone]), ...crossed(unrepeatable, nothingDone)])(
    '%s after %s',
    async (_, __, call, step) => {
      const { client, sent, pauses } = scriptedClient([step(), success({ items: [], has_more: false })], patience)
      await call(client)
      expect(sent).toHaveLength(2)
      expect(sent[1]).toEqual(sent[0])
      expect(pauses).toEqual([100])
    },
  )
})

describe('a write of unknown outcome', () => {
  it.each(unkeyed)('is not sent again without a key: %s', async (_, call) => {
    const { client, sent } = scriptedClient([inDoubt()])
    await expect(call(client)).rejects.toMatchObject({ status: 503, outcome: 'unknown', attempts: 1 })
    expect(sent).toHaveLength(1)
  })

  it.each(keyed)('is sent again under its key: %s', async (_, call) => {
    const { client, sent } = scriptedClient([inDoubt(), success({})])
    await call(client)
    expect(sent[1]).toEqual(sent[0])
  })
})

describe('a request is not sent again', () => {
  it.each([...crossed(unrepeatable, perhapsDone), ...crossed([...repeatable, ...unrepeatable], final)])(
    '%s after %s',
    async (_, __, call, step) => {
      const { client, sent } = scriptedClient([step()], patience)
      await expect(call(client)).rejects.toMatchObject({ attempts: 1 })
      expect(sent).toHaveLength(1)
    },
  )

  it('once the retries are used up, and the last failure is told', async () => {
    const down = () => refusal('operation_failed', 503)
    const { client, sent, pauses } = scriptedClient([down(), down(), down(), networkError('ECONNRESET')], {
      retries: 3,
    })
    const error = await client.people.get('ada').catch(each => each)
    expect(error).toBeInstanceOf(KithConnectionError)
    expect(error.attempts).toBe(4)
    expect(sent).toHaveLength(4)
    expect(pauses).toEqual([100, 200, 400])
  })

  it('where retries are 0', async () => {
    const { client, sent } = scriptedClient([refusal('rate_limit_exceeded', 429)], { retries: 0 })
    await expect(client.people.get('ada')).rejects.toThrow('A sentence.')
    expect(sent).toHaveLength(1)
  })
})

describe('the pause before a retry', () => {
  it('is anything from nothing to a bound that doubles up to 5 seconds', async () => {
    const steps = Array.from({ length: 8 }, () => networkError('ECONNREFUSED'))
    const { client, pauses } = scriptedClient([...steps, success(true)], { retries: 8, random: () => 1 })
    await client.people.get('ada')
    expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000])
    const eager = scriptedClient([networkError('ECONNREFUSED'), success(true)], { random: () => 0 })
    await eager.client.people.get('ada')
    expect(eager.pauses).toEqual([0])
  })

  it('comes after what Retry-After asks for, in seconds or as a date', async () => {
    const { client, pauses } = scriptedClient([
      refusal('rate_limit_exceeded', 429, { 'Retry-After': '2' }),
      refusal('rate_limit_exceeded', 429, { 'Retry-After': new Date(0).toUTCString() }),
      success(true),
    ])
    await client.people.create({})
    expect(pauses).toEqual([2_100, 200])
  })

  it('comes after what a proxy asks for, too', async () => {
    const busy = new Response('busy', { status: 503, headers: { 'Retry-After': '3' } })
    const { client, pauses } = scriptedClient([busy, success(true)])
    await client.people.get('ada')
    expect(pauses).toEqual([3_100])
  })

  it('is not waited where it is longer than half a minute', async () => {
    const { client, sent } = scriptedClient([refusal('rate_limit_exceeded', 429, { 'Retry-After': '31' })])
    await expect(client.people.get('ada')).rejects.toMatchObject({ retryAfterSeconds: 31, attempts: 1 })
    expect(sent).toHaveLength(1)
  })
})

describe('when an answer was lost', () => {
  it('a delete that then finds nothing has done its work', async () => {
    const { client } = scriptedClient([networkError('ECONNRESET'), refusal('not_found', 404)])
    expect(await client.people.delete('ada')).toBe(true)
  })

  it('a delete that was refused for sure, and then finds nothing, has not', async () => {
    const { client } = scriptedClient([refusal('rate_limit_exceeded', 429), refusal('not_found', 404)])
    await expect(client.people.delete('ada')).rejects.toMatchObject({ word: 'not_found', answerLost: false })
  })

  it('the refusal of the next attempt says so', async () => {
    const { client } = scriptedClient([networkError('ECONNRESET'), refusal('invalid_parameter', 412)])
    await expect(client.people.patch('ada', {}, { ifMatch: 3 })).rejects.toMatchObject({
      status: 412,
      answerLost: true,
      attempts: 2,
    })
  })
})

describe('an idempotency key', () => {
  it('is made for every POST that writes, and kept when it is sent again', async () => {
    const { client, sent } = scriptedClient([refusal('rate_limit_exceeded', 429), success({}), success({})])
    await client.people.create({})
    await client.people.create({})
    const keys = sent.map(({ headers }) => headers.get('idempotency-key'))
    expect(keys[0]).toMatch(/^[\da-f]{32}$/)
    expect(keys[1]).toBe(keys[0])
    expect(keys[2]).not.toBe(keys[0])
  })

  it('is not made for reads and other methods, and the given one is used', async () => {
    const { client, sent } = scriptedClient(Array.from({ length: 4 }, () => success({ items: [], has_more: false })))
    await client.people.list().page()
    await client.people.patch('ada', {})
    await client.people.patch('ada', {}, { idempotencyKey: 'mine' })
    await client.people.create({}, { idempotencyKey: 'mine too' })
    expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual([null, null, 'mine', 'mine too'])
  })
})
