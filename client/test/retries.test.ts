import { describe, expect, it } from 'vitest'
import { KithConnectionError } from '../index.ts'
import { networkError, refusal, type Step, scriptedClient, success } from './scripted-fetch.ts'

type Client = ReturnType<typeof scriptedClient>['client']
type Call = (client: Client) => Promise<unknown>

const declaration = { owner: 'people', key: 'age', type: 'number' } as const

const webhook = { url: 'https://a.example', events: ['person.*'] } as { url: string; events: 'person.*'[] }

const repeatable: [string, Call][] = [
  ['get', client => client.people.get('ada')],
  ['list', client => client.people.list().page()],
  ['filter', client => client.people.filter({ state: 'active' }).page()],
  ['related', client => client.people.related('ada', { target: 'orders' }).page()],
  ['replace', client => client.people.replace('ada', {})],
  ['replaceById that renames', client => client.people.replace({ id: '1' }, { external_id: 'other' })],
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
  ['a dry run of a patch', client => client.people.patch('ada', {}, { dryRun: true })],
  ['a dry run of a create', client => client.people.create({}, { dryRun: true })],
  ['search', client => client.people.search('ada').page()],
  ['aggregate', client => client.people.aggregate({})],
  ['patch of a segment', client => client.segments.patch('vips', {})],
  ['any request by its endpoint', client => client.request('GET', '/v1/organization')],
  ['erase', client => client.people.erase('ada', { reason: 'r' })],
  ['erase of a version', client => client.people.erase('ada', { reason: 'r' }, { ifMatch: 3 })],
  ['preview of a declaration', client => client.schema.declare(declaration, { dryRun: true })],
]

const unrepeatable: [string, Call][] = [
  ['patch', client => client.people.patch('ada', {})],
  ['patch of any version', client => client.people.patch('ada', {}, { ifMatch: '*' })],
  ['replace that renames', client => client.people.replace('ada', { external_id: 'other' })],
  ['declaration of an observed key', client => client.schema.declare(declaration)],
  ['creation of a webhook, whose secret is not stored', client => client.webhooks.create(webhook)],
  ['rotation of a secret', client => client.webhooks.rotate(1)],
  ['test of a webhook', client => client.webhooks.test(1)],
  ['creation of a client', client => client.access.clients.create({ name: 'a', scopes: ['people:read'] })],
  [
    'any request by its endpoint',
    client => client.request('PATCH', '/v1/people/{external_id}', { params: { external_id: 'ada' }, body: {} }),
  ],
]

const notDone: [string, () => Step][] = [
  ['429', () => refusal('rate_limit_exceeded', 429)],
  ['409 of a key that is still running', () => refusal('invalid_parameter', 409)],
  ['429 of a proxy', () => new Response('slow down', { status: 429 })],
  ['a refused connection', () => networkError('ECONNREFUSED')],
  ['an unknown host', () => networkError('ENOTFOUND')],
  [
    'a refused connection at every address',
    () => new TypeError('fetch failed', { cause: new AggregateError([networkError('ECONNREFUSED')]) }),
  ],
]

const possiblyDone: [string, () => Step][] = [
  ['503', () => refusal('operation_failed', 503)],
  ['502 of a proxy', () => new Response('<h1>bad gateway</h1>', { status: 502 })],
  ['504 of a proxy', () => new Response('', { status: 504 })],
  ['a broken connection', () => networkError('ECONNRESET')],
  ['a network error without a code', () => new TypeError('Failed to fetch')],
  ['a timeout', () => 'silence'],
]

const unknownOutcome = (): Step =>
  Response.json({ error: 'operation_failed', message: 'It may have been done.', outcome: 'unknown' }, { status: 503 })

/** The calls that the client sends without an Idempotency-Key. */
const unkeyed = [...repeatable, ...unrepeatable].filter(
  ([name]) => /^(replace|patch|delete)/.test(name) && !name.includes('key'),
)
const keyed = repeatable.filter(([name]) => /^(create|upsert|batch)/.test(name) || name.includes('key'))

const final: [string, () => Step][] = [
  ['400', () => refusal('invalid_parameter', 400)],
  ['409 of a taken name', () => refusal('duplicate_entry', 409)],
  ['422 of a key that was used with another body', () => refusal('invalid_parameter', 422)],
  ['500 of a missing person', () => refusal('not_found', 500)],
  ['500 of the service', () => refusal('operation_failed', 500)],
  ['504 of the service', () => refusal('operation_failed', 504)],
  ['a response that is not from kith', () => new Response('<h1>hello</h1>')],
]

const shortTimeout = { timeoutMs: 20 }
const combine = (calls: [string, Call][], steps: [string, () => Step][]) =>
  calls.flatMap(([name, call]) => steps.map(([ending, step]) => [name, ending, call, step] as const))

describe('a request that may be retried', () => {
  it.each([...combine(repeatable, [...notDone, ...possiblyDone]), ...combine(unrepeatable, notDone)])(
    'is retried: %s after %s',
    async (_, __, call, step) => {
      const { client, sent, pauses } = scriptedClient([step(), success({ items: [], has_more: false })], shortTimeout)
      await call(client)
      expect(sent).toHaveLength(2)
      expect(sent[1]).toEqual(sent[0])
      expect(pauses).toEqual([100])
    },
  )
})

describe('a write with an unknown outcome', () => {
  it.each(unkeyed)('is not retried without a key: %s', async (_, call) => {
    const { client, sent } = scriptedClient([unknownOutcome()])
    await expect(call(client)).rejects.toMatchObject({ status: 503, outcome: 'unknown', attempts: 1 })
    expect(sent).toHaveLength(1)
  })

  it.each(keyed)('is retried with its key: %s', async (_, call) => {
    const { client, sent } = scriptedClient([unknownOutcome(), success({})])
    await call(client)
    expect(sent[1]).toEqual(sent[0])
  })
})

describe('a request that must not be retried', () => {
  it.each([...combine(unrepeatable, possiblyDone), ...combine([...repeatable, ...unrepeatable], final)])(
    'is sent once: %s after %s',
    async (_, __, call, step) => {
      const { client, sent } = scriptedClient([step()], shortTimeout)
      await expect(call(client)).rejects.toMatchObject({ attempts: 1 })
      expect(sent).toHaveLength(1)
    },
  )

  it('is given up after the last retry with the last error', async () => {
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

  it('is not retried if retries is 0', async () => {
    const { client, sent } = scriptedClient([refusal('rate_limit_exceeded', 429)], { retries: 0 })
    await expect(client.people.get('ada')).rejects.toThrow('A sentence.')
    expect(sent).toHaveLength(1)
  })
})

describe('the pause before a retry', () => {
  it('is random from zero to a bound that doubles up to 5 seconds', async () => {
    const steps = Array.from({ length: 8 }, () => networkError('ECONNREFUSED'))
    const { client, pauses } = scriptedClient([...steps, success(true)], { retries: 8, random: () => 1 })
    await client.people.get('ada')
    expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000])
    const eager = scriptedClient([networkError('ECONNREFUSED'), success(true)], { random: () => 0 })
    await eager.client.people.get('ada')
    expect(eager.pauses).toEqual([0])
  })

  it('is added to Retry-After, in seconds or as a date', async () => {
    const { client, pauses } = scriptedClient([
      refusal('rate_limit_exceeded', 429, { 'Retry-After': '2' }),
      refusal('rate_limit_exceeded', 429, { 'Retry-After': new Date(0).toUTCString() }),
      success(true),
    ])
    await client.people.create({})
    expect(pauses).toEqual([2_100, 200])
  })

  it('is added to the Retry-After of a proxy', async () => {
    const busy = new Response('busy', { status: 503, headers: { 'Retry-After': '3' } })
    const { client, pauses } = scriptedClient([busy, success(true)])
    await client.people.get('ada')
    expect(pauses).toEqual([3_100])
  })

  it('does not happen if Retry-After is longer than 30 seconds', async () => {
    const { client, sent } = scriptedClient([refusal('rate_limit_exceeded', 429, { 'Retry-After': '31' })])
    await expect(client.people.get('ada')).rejects.toMatchObject({ retryAfterSeconds: 31, attempts: 1 })
    expect(sent).toHaveLength(1)
  })
})

describe('after a lost response', () => {
  it('a delete whose retry finds nothing succeeds', async () => {
    const { client } = scriptedClient([networkError('ECONNRESET'), refusal('not_found', 404)])
    expect(await client.people.delete('ada')).toBe(true)
  })

  it('a delete that was certainly refused, and whose retry finds nothing, rejects', async () => {
    const { client } = scriptedClient([refusal('rate_limit_exceeded', 429), refusal('not_found', 404)])
    await expect(client.people.delete('ada')).rejects.toMatchObject({ code: 'not_found', answerLost: false })
  })

  it('the error of the retry has answerLost', async () => {
    const { client } = scriptedClient([networkError('ECONNRESET'), refusal('invalid_parameter', 412)])
    await expect(client.people.patch('ada', {}, { ifMatch: 3 })).rejects.toMatchObject({
      status: 412,
      answerLost: true,
      attempts: 2,
    })
  })
})

describe('an idempotency key', () => {
  it('is generated for every POST that writes and repeated in retries', async () => {
    const { client, sent } = scriptedClient([refusal('rate_limit_exceeded', 429), success({}), success({})])
    await client.people.create({})
    await client.people.create({})
    const keys = sent.map(({ headers }) => headers.get('idempotency-key'))
    expect(keys[0]).toMatch(/^[\da-f]{32}$/)
    expect(keys[1]).toBe(keys[0])
    expect(keys[2]).not.toBe(keys[0])
  })

  it('is not generated for reads and other methods, and a given key is used', async () => {
    const { client, sent } = scriptedClient(Array.from({ length: 4 }, () => success({ items: [], has_more: false })))
    await client.people.list().page()
    await client.people.patch('ada', {})
    await client.people.patch('ada', {}, { idempotencyKey: 'mine' })
    await client.people.create({}, { idempotencyKey: 'mine too' })
    expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual([null, null, 'mine', 'mine too'])
  })
})

describe('the options of a call', () => {
  it('retries and timeoutMs replace those of the client', async () => {
    const { client, sent, pauses } = scriptedClient([refusal('operation_failed', 503), 'silence', success({ id: '1' })])
    await expect(client.people.get('ada', { retries: 0 })).rejects.toMatchObject({ status: 503, attempts: 1 })
    expect(await client.people.get('ada', { retries: 1, timeoutMs: 5 })).toEqual({ id: '1' })
    expect([sent.length, pauses.length]).toEqual([3, 1])
    for (const options of [{ retries: -1 }, { timeoutMs: 0 }])
      await expect(client.people.get('ada', options)).rejects.toBeInstanceOf(TypeError)
  })

  it('by another name are refused before anything is sent', async () => {
    const { client, sent } = scriptedClient([])
    for (const options of [{ after_id: 'a' }, { cursor: 'a' }, { limit: 1 }, { sort_direction: 'asc' }])
      await expect(client.people.list(options as object).page()).rejects.toThrow(/is not an option: its name is/)
    expect(sent).toEqual([])
  })
})

describe('a call', () => {
  it('has its response beside its data, and rejects once', async () => {
    const { client } = scriptedClient([success({ id: '1' }, 201), refusal('not_found', 404)])
    const { data, response } = await client.people.create({}).withResponse()
    expect([data, response.status]).toEqual([{ id: '1' }, 201])
    await expect(client.people.get('nobody').withResponse()).rejects.toMatchObject({ code: 'not_found' })
  })

  it('reports each attempt to the logger, with its error and the pause after it', async () => {
    const attempts: unknown[] = []
    const logger = (attempt: object) => void attempts.push(attempt)
    const steps = [networkError('ECONNRESET'), refusal('operation_failed', 503), success({ id: '1' })]
    const { client, pauses } = scriptedClient(steps, { logger })
    await client.people.get('ada')
    const request = { method: 'GET', path: '/v1/people/ada', durationMs: expect.any(Number) }
    expect(attempts).toEqual([
      { ...request, attempt: 1, status: null, requestId: null, error: expect.any(Error), pauseMs: pauses[0] },
      { ...request, attempt: 2, status: 503, requestId: null, error: expect.any(Error), pauseMs: pauses[1] },
      { ...request, attempt: 3, status: 200, requestId: null, error: null, pauseMs: null },
    ])
  })
})
