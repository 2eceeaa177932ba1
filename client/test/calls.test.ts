import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { isKithError, KithConnectionError, KithError, KithTimeoutError } from '../index.ts'
import { networkError, refusal, scriptedClient, success } from './scripted-fetch.ts'

type Client = ReturnType<typeof scriptedClient>['client']
type Call = (client: Client) => Promise<unknown>

// In plain JavaScript, no types refuse this option.
const misspelt = { dry_run: true } as object

describe('invalid input', () => {
  it.each<[string, Call]>([
    ['an empty identifier', client => client.people.get('')],
    ['an identifier with half a surrogate pair', client => client.people.get('\ud800')],
    ['an identifier that a URL would resolve as a parent path', client => client.people.delete('..')],
    [
      'NaN, which JSON would turn into null',
      client => client.people.patch('ada', { attribute_values: { total: Number.NaN } }),
    ],
    ['an infinity', client => client.people.patch('ada', { attribute_values: { deep: [{ x: 1 / 0 }] } })],
    [
      'an invalid date, which JSON would turn into null',
      client => client.people.patch('ada', { attribute_values: { seen: new Date('yesterday') } }),
    ],
    [
      'NaN in the request of a stream',
      async client =>
        client.people
          .groups({ filter: { 'attribute_values.n': Number.NaN } })
          [Symbol.asyncIterator]()
          .next(),
    ],
    ['undefined in an array', client => client.people.patch('ada', { attribute_values: { list: [undefined] } })],
    ['people as a stack key', async client => client.stack('people')],
    ['dry_run in place of dryRun, of a deletion', client => client.people.delete('ada', misspelt)],
    [
      'dry_run in place of dryRun, of an erasure',
      client => client.people.erase('ada', { reason: 'request' }, misspelt),
    ],
    [
      'dry_run in place of dryRun, of an import',
      async client => client.people.import(['{}'], misspelt)[Symbol.asyncIterator]().next(),
    ],
  ])('throws a TypeError before a request is sent: %s', async (_, call) => {
    const { client, sent } = scriptedClient([])
    await expect(async () => call(client)).rejects.toThrow(TypeError)
    expect(sent).toHaveLength(0)
  })

  it.each([
    [{ url: 'ftp://kith.test' }],
    [{ url: 'kith' }],
    [{ retries: Number.NaN }],
    [{ retries: -1 }],
    [{ timeoutMs: Number.POSITIVE_INFINITY }],
    [{ timeoutMs: 0 }],
  ])('throws a TypeError for the client options %o', options => {
    expect(() => scriptedClient([], options)).toThrow(TypeError)
  })

  it.each([{ token: undefined }, { getToken: () => undefined }])('says that %o is no token', async options => {
    const { client } = scriptedClient([], { token: undefined, ...options } as never)
    await expect(client.people.get('ada')).rejects.toThrow('the token is empty')
  })

  it('throws a TypeError for a malformed token without quoting it', async () => {
    for (const token of ['', 'secret\nsecret', 'sécret']) {
      const error = await scriptedClient([], { token })
        .client.people.get('ada')
        .catch(each => each)
      expect(error).toBeInstanceOf(TypeError)
      expect(error.message).not.toContain('cret')
    }
  })
})

describe('a call', () => {
  it('rejects with the reason of its signal if it aborts during an attempt', async () => {
    const controller = new AbortController()
    const { client, sent } = scriptedClient(['silence'])
    const call = client.people.get('ada', { signal: controller.signal })
    await expect.poll(() => sent.length).toBe(1)
    controller.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
    expect(sent).toHaveLength(1)
  })

  it('rejects with the reason of its signal if it aborts during a pause', async () => {
    const controller = new AbortController()
    const { client, sent } = scriptedClient([refusal('rate_limit_exceeded', 429, { 'Retry-After': '30' })], {
      sleep: undefined,
    } as never)
    const call = client.people.get('ada', { signal: controller.signal })
    await expect.poll(() => sent.length).toBe(1)
    controller.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
  })

  it('rejects with the reason of its signal if it aborts while the client waits for a token', async () => {
    const controller = new AbortController()
    const { client } = scriptedClient([], { token: undefined, getToken: () => new Promise(() => {}) } as never)
    const call = client.people.get('ada', { signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
  })

  it('rejects without a request if its signal has already aborted', async () => {
    const { client, sent } = scriptedClient([])
    await expect(client.people.get('ada', { signal: AbortSignal.abort() })).rejects.toThrow('aborted')
    expect(sent).toHaveLength(0)
  })

  it('rejects with KithTimeoutError if there is no response in time', async () => {
    const { client } = scriptedClient(['silence'], { timeoutMs: 5, retries: 0 })
    const error = await client.people.create({}).catch(each => each)
    expect(error).toBeInstanceOf(KithTimeoutError)
    expect(error).toMatchObject({ timeoutMs: 5, attempts: 1 })
  })
})

it('an import whose source fails while a chunk waits for the network rejects with that error, and no other promise does', async () => {
  async function* lines() {
    yield { external_id: 'ada', attribute_values: { text: 'x'.repeat(40_000) } }
    throw new Error('the file is broken')
  }
  const fetch = async (_: string, { body }: { body: ReadableStream }) => {
    const reader = body.getReader()
    await reader.read()
    // Node.js reports an unhandled rejection after the microtasks of a turn.
    await new Promise(resolve => setTimeout(resolve))
    await reader.read()
  }
  const { client } = scriptedClient([], { fetch } as never)
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  await expect(client.people.import(lines())[Symbol.asyncIterator]().next()).rejects.toThrow('the file is broken')
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})

describe('an error', () => {
  it('has the fields of the error response', async () => {
    const { client } = scriptedClient([refusal('operation_failed', 500)])
    const error = await client.people.create({}).catch(each => each)
    expect(error).toBeInstanceOf(KithError)
    expect({ ...error, message: error.message, name: error.name }).toEqual({
      name: 'KithError',
      code: 'operation_failed',
      status: 500,
      message: 'A sentence.',
      sentence: 'A sentence.',
      missing: null,
      details: [],
      request_id: 'r1',
      errorstack: { reason: 'a reason', request_id: 'r1' },
      reason: null,
      retryAfterSeconds: null,
      outcome: null,
      attempts: 1,
      answerLost: false,
    })
  })

  it('includes the first detail in its message and counts the others', async () => {
    const city = { path: '/attribute_values/city', message: 'must be a text' }
    const messageOf = async (details: { path: string; message: string }[]) => {
      const { client } = scriptedClient([refusal('invalid_parameter', 400, {}, details)])
      return client.people.create({}).catch(error => error.message)
    }
    expect(await messageOf([])).toBe('A sentence.')
    expect(await messageOf([city])).toBe('A sentence (at /attribute_values/city: must be a text)')
    expect(await messageOf([city, city, city])).toBe(
      'A sentence (at /attribute_values/city: must be a text; and 2 more)',
    )
    expect(await messageOf([{ path: '', message: 'must be an object' }])).toBe('A sentence (must be an object)')
  })

  it('is distinguished by its code, whatever the status', async () => {
    const { client } = scriptedClient([refusal('not_found', 500)])
    const error = await client.people.patch('ada', {}).catch(each => each)
    expect(isKithError(error, 'not_found')).toBe(true)
    expect(isKithError(error, 'duplicate_entry')).toBe(false)
    expect(isKithError(error)).toBe(true)
    expect(isKithError(new Error('other'))).toBe(false)
  })

  it('is a KithConnectionError with the status if the response is not from kith', async () => {
    const { client } = scriptedClient([new Response('<h1>not here</h1>', { status: 404 })])
    const error = await client.people.get('ada').catch(each => each)
    expect(error).toBeInstanceOf(KithConnectionError)
    expect(error.status).toBe(404)
  })

  it('tells of a redirect, which is not followed and not repeated', async () => {
    let requests = 0
    const server = createServer((_, response) => {
      requests++
      response.writeHead(308, { Location: 'https://kith.test/' }).end()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const { client } = scriptedClient([], { url: `http://127.0.0.1:${port}`, fetch: undefined } as never)
    const refused = { name: 'KithConnectionError', status: 308 }
    await expect(client.people.get('ada')).rejects.toMatchObject(refused)
    await expect(client.people.export()[Symbol.asyncIterator]().next()).rejects.toMatchObject(refused)
    expect(requests).toBe(2)
    server.close()
  })
})

it('getToken is called before every attempt, but not for endpoints that need no token', async () => {
  let tokens = 0
  const getToken = async () => `token-${++tokens}`
  const steps = [networkError('ECONNREFUSED'), success({}), success({ healthy: true })]
  const { client, sent } = scriptedClient(steps, { token: undefined, getToken } as never)
  await client.people.get('ada')
  await client.health()
  expect(sent.map(({ headers }) => headers.get('authorization'))).toEqual(['Bearer token-1', 'Bearer token-2', null])
})

describe('a dry run', () => {
  it.each<[string, string, Call]>([
    ['POST', '/v1/people', client => client.people.create({}, { dryRun: true })],
    ['PUT', '/v1/people/ada', client => client.people.replace('ada', {}, { dryRun: true })],
    ['PATCH', '/v1/people/ada', client => client.people.patch('ada', {}, { dryRun: true })],
    ['DELETE', '/v1/people/ada', client => client.people.delete('ada', { dryRun: true })],
    ['POST', '/v1/people/upsert', client => client.people.upsert({ external_id: 'ada' }, { dryRun: true })],
    ['POST', '/v1/people/internal/1/restore', client => client.people.restore({ id: '1' }, { dryRun: true })],
    ['POST', '/v1/people/batch', client => client.people.batch([], { dryRun: true, atomic: true })],
    ['POST', '/v1/schema/stacks', client => client.schema.stacks.create({ key: 'a', kind: 'item' }, { dryRun: true })],
    ['PATCH', '/v1/schema/settings', client => client.schema.patchSettings({}, { dryRun: true })],
    ['POST', '/v1/people/ada/merge', client => client.people.merge('ada', { from: 'bob' }, { dryRun: true })],
    ['POST', '/v1/people/ada/unmerge', client => client.people.unmerge('ada', { from: 'bob' }, { dryRun: true })],
    ['POST', '/v1/people/ada/erase', client => client.people.erase('ada', { reason: 'r' }, { dryRun: true })],
  ])('is a parameter of %s %s, and is repeated without an Idempotency-Key', async (method, path, call) => {
    const { client, sent } = scriptedClient([refusal('operation_failed', 503), success({ dry_run: true })])
    expect(await call(client)).toEqual({ dry_run: true })
    const expected = [method, `https://kith.test${path}?dry_run=true`, false]
    for (const { method, url, headers } of sent) expect([method, url, headers.has('idempotency-key')]).toEqual(expected)
    expect(sent.length).toBe(2)
  })

  it('that finds no entity after a lost response is not taken for a deletion', async () => {
    const { client } = scriptedClient([refusal('operation_failed', 503), refusal('not_found', 404)])
    const error = await client.people.delete('ada', { dryRun: true }).catch(each => each)
    expect(isKithError(error, 'not_found')).toBe(true)
  })
})

describe('the numbers of writes', () => {
  const written = (sequence: string) =>
    Response.json({ status: 'Success', data: true }, { headers: { 'X-Kith-Sequence': sequence } })
  const sentNumbers = (sent: { headers: Headers }[]) => sent.map(({ headers }) => headers.get('If-Sequence'))
  const lines = () => new Response('{"id":"1"}\n', { headers: { 'Content-Type': 'application/x-ndjson' } })

  it('are remembered, and sent with reads if the client reads its own writes', async () => {
    const steps = [success({}), written('12'), written('11'), success({}), success({ items: [] }), lines()]
    const { client, sent } = scriptedClient(steps, { readYourWrites: true })
    expect(client.sequence()).toBeUndefined()
    await client.people.get('ada')
    await client.people.patch('ada', {})
    await client.people.patch('ada', {})
    expect(client.sequence()).toBe(12)
    await client.people.get('ada')
    await client.people.list().page()
    for await (const _ of client.people.export());
    expect(sentNumbers(sent)).toEqual([null, null, null, '12', '12', '12'])
  })

  it('are sent only where a call names one otherwise', async () => {
    const { client, sent } = scriptedClient([written('12'), success({}), success({}), success({ items: [] })])
    await client.people.patch('ada', {}, { ifSequence: 3 })
    await client.people.get('ada')
    await client.people.get('ada', { ifSequence: 7 })
    await client.people.list({ ifSequence: 8 }).page()
    expect(sentNumbers(sent)).toEqual([null, null, '7', '8'])
  })
})
