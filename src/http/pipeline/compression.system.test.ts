import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { createGunzip, createZstdDecompress, gunzipSync, zstdDecompressSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../../client/index.ts'
import { scriptedClient } from '../../../client/test/scripted-fetch.ts'
import { insertPeople } from '../../../test/support/many-people.ts'
import { useOwnService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'
import { type Coding, chooseCoding } from '../input/preferences.ts'
import { compress } from './send-result.ts'

const service = useOwnService({ KITH_LIMIT_REQUEST_MS: '2000', KITH_ACCESS_LOG: 'on' })
const shop = useSharedShop(service, 'referrer')
const codings = ['gzip', 'zstd'] as const satisfies Coding[]
const decoders = { gzip: gunzipSync, zstd: zstdDecompressSync }

type Asked = { method?: string; path: string; headers?: Record<string, string>; body?: string }

/** Sends a request without fetch's decompression. Returns the response when its head has arrived. */
async function open({ method = 'GET', path, headers, body }: Asked): Promise<IncomingMessage> {
  const sent = request(`${service.address}${path}`, {
    method,
    headers: { Authorization: `Bearer ${shop.token}`, ...headers },
  })
  sent.end(body)
  const [response] = await once(sent, 'response')
  return response as IncomingMessage
}

async function receive(asked: Asked): Promise<{ coding: string | undefined; vary: string | undefined; bytes: Buffer }> {
  const response = await open(asked)
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const { 'content-encoding': coding, vary } = response.headers
  return { coding, vary, bytes: Buffer.concat(chunks) }
}

const lines = { Accept: 'application/x-ndjson' }
const json = { 'Content-Type': 'application/json' }
const streams: Record<string, Asked> = {
  'an export': { method: 'POST', path: '/v1/people/export' },
  'the change log': { path: '/v1/changes', headers: lines },
  'a dossier': { path: '/v1/people/p1/dossier' },
  'an aggregate': {
    method: 'POST',
    path: '/v1/people/aggregate',
    headers: { ...lines, ...json },
    body: '{"group_by":["first_name"],"measures":[{"op":"count"}]}',
  },
  'the observed keys': { path: '/v1/schema/observed?owner=people', headers: lines },
  'the access log': { path: '/v1/access-log', headers: lines },
  'an import': {
    method: 'POST',
    path: '/v1/people/import',
    headers: { 'Content-Type': 'application/x-ndjson' },
    body: '{"external_id":"p1"}\n{"external_id":7}\n',
  },
}

/**
 * 6 KB that compress to no less than half. An export of some thousand such people exceeds the buffers of the sockets.
 */
const randomText = `jsonb_build_object('text', (select string_agg(md5((n * 1000 + k)::text), '') from generate_series(1, 200) k))`

beforeAll(async () => {
  for (const first_name of ['Ada', 'Bob']) await shop.ok('POST', '/v1/people', { first_name })
  const attributes = `jsonb_build_object('text', repeat('n', 500), 'number', n)`
  await insertPeople(service.sql, shop.id, 2_000, { attributes })
})

describe.each(codings)('%s', coding => {
  it.each(Object.keys(streams))('compresses %s for a client that accepts it', async name => {
    const asked = streams[name]!
    const plain = await receive(asked)
    const compressed = await receive({ ...asked, headers: { ...asked.headers, 'Accept-Encoding': coding } })
    expect([plain.coding, plain.vary]).toEqual([undefined, 'Accept-Encoding'])
    expect([compressed.coding, compressed.vary]).toEqual([coding, 'Accept-Encoding'])
    const text = decoders[coding](compressed.bytes).toString()
    // Request ids, times and the access log itself differ between the two requests.
    const withoutTimes = (given: string) => given.replaceAll(/"[^"]*\d{4}-\d\d-\d\dT[^"]*"|"request_id":"[^"]*"/g, '""')
    if (name === 'the access log' || name === 'a dossier')
      expect(
        text
          .trim()
          .split('\n')
          .map(line => JSON.parse(line)),
      ).not.toEqual([])
    else expect(withoutTimes(text)).toBe(withoutTimes(plain.bytes.toString()))
  })

  it('leaves less than a fifth of an export', async () => {
    const asked = streams['an export']!
    const { bytes } = await receive({ ...asked, headers: { 'Accept-Encoding': coding } })
    expect(bytes.length * 5).toBeLessThan((await receive(asked)).bytes.length)
  })

  it('sends a line when it is written, while the request goes on', async () => {
    const sent = request(`${service.address}/v1/people/import`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${shop.token}`,
        'Content-Type': 'application/x-ndjson',
        'Accept-Encoding': coding,
      },
    })
    sent.write('{"external_id":7}\n')
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const text = response.pipe(coding === 'gzip' ? createGunzip() : createZstdDecompress())
    const [first] = await once(text, 'data')
    expect(JSON.parse(String(first).split('\n')[0]!)).toMatchObject({ line: 1 })
    sent.end()
    let last = ''
    for await (const chunk of text) last = String(chunk).trim().split('\n').at(-1)!
    expect(JSON.parse(last)).toMatchObject({ received: 1, failed: 1 })
  })

  it('has no end if the stream breaks', async () => {
    const asked = { ...streams['an export']!, headers: { 'Accept-Encoding': coding } }
    const { token, id } = await service.organization()
    await insertPeople(service.sql, id, 3_000, { attributes: randomText })
    const response = await open({ ...asked, headers: { ...asked.headers, Authorization: `Bearer ${token}` } })
    const received: Buffer[] = []
    response.on('data', chunk => received.push(chunk))
    const closed = new Promise(resolve => response.once('close', resolve))
    response.on('error', () => {})
    await once(response, 'data')
    response.pause()
    await service.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like 'copy (select%'
         and pid <> pg_backend_pid()`,
    )
    response.resume()
    await closed
    expect(response.complete).toBe(false)
    expect(() => decoders[coding](Buffer.concat(received))).toThrow()
  })

  it('asks for a part only when the one before is sent, and lets the producer reuse its buffer', async () => {
    let asked = 0
    const buffer = Buffer.alloc(300_000)
    const originals: Buffer[] = []
    const produce = async function* () {
      for (; asked < 20; buffer.fill(0)) {
        asked += 1
        randomBytes(buffer.length).copy(buffer)
        originals.push(Buffer.from(buffer))
        yield buffer
      }
    }
    const output: Buffer[] = []
    for await (const piece of compress(produce(), coding)) {
      output.push(piece)
      const pieces = output.length
      await new Promise(setImmediate)
      expect(asked).toBeLessThanOrEqual(Math.ceil(pieces / 3))
    }
    expect(decoders[coding](Buffer.concat(output)).equals(Buffer.concat(originals))).toBe(true)
  })

  it('ends the producer if the client leaves', async () => {
    let isEnded = false
    const produce = async function* () {
      try {
        for (;;) yield 'line\n'
      } finally {
        isEnded = true
      }
    }
    for await (const _ of compress(produce(), coding)) break
    expect(isEnded).toBe(true)
  })
})

describe('the client', () => {
  const exportWith = async (acceptEncoding?: string) => {
    const codings: (string | null)[] = []
    const client = createClient({
      url: service.address,
      token: shop.token,
      fetch: async (url, init) => {
        const headers = new Headers(init?.headers)
        if (acceptEncoding !== undefined) headers.set('Accept-Encoding', acceptEncoding)
        const response = await fetch(url, { ...init, headers })
        codings.push(response.headers.get('Content-Encoding'))
        return response
      },
    })
    const people = []
    for await (const person of client.people.export()) people.push(person)
    return { people, codings }
  }

  it('asks for plain lines over loopback, and reads compressed ones', async () => {
    const { people, codings } = await exportWith()
    expect([people.length > 2_000, codings]).toEqual([true, [null]])
    expect(await exportWith('gzip')).toEqual({ people, codings: ['gzip'] })
  })

  it('leaves the coding to fetch over a network', async () => {
    const { client, sent } = scriptedClient([new Response('', { headers: { 'content-type': 'application/x-ndjson' } })])
    for await (const person of client.people.export()) expect(person).toBeUndefined()
    expect(sent[0]!.headers.has('Accept-Encoding')).toBe(false)
  })
})

describe('an organization whose responses use all its memory', { timeout: 60_000 }, () => {
  const small = useOwnService({ KITH_LIMIT_ANSWER_BYTES: `${2 ** 20}`, KITH_LIMIT_REQUEST_MS: '60000' })

  it('gets lines without compression, and with it again when there is memory', async () => {
    const { token, id } = await small.organization()
    await insertPeople(small.sql, id, 4_000, { attributes: randomText })
    const openExport = async () => {
      const sent = request(`${small.address}/v1/people/export`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Accept-Encoding': 'gzip' },
      })
      sent.end()
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      return response
    }
    const [first, second] = [await openExport(), await openExport()]
    expect([first, second].map(({ headers }) => headers['content-encoding'])).toEqual(['gzip', undefined])
    for (const response of [first, second]) {
      const closed = once(response, 'close')
      response.resume()
      await closed
    }
    const third = await openExport()
    expect(third.headers['content-encoding']).toBe('gzip')
    third.destroy()
  })
})

describe('the header Accept-Encoding', () => {
  it.each<[header: string | undefined, Coding | undefined]>([
    [undefined, undefined],
    ['', undefined],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZIP, Deflate', 'gzip'],
    ['gzip, deflate, br, zstd', 'zstd'],
    ['zstd;q=0.5, gzip;q=0.8', 'gzip'],
    ['gzip;q=0', undefined],
    ['gzip;q=0, *', undefined],
    ['*', 'gzip'],
    ['*;q=0', undefined],
    ['zstd;q=0, *', 'gzip'],
    ['identity', undefined],
    ['identity, gzip;q=0.5', undefined],
    ['identity;q=0, gzip;q=0.1', 'gzip'],
    ['identity;q=0', undefined],
    ['gzip;q=2', undefined],
    ['gzip;q=one', undefined],
    ['gzip;q=-1, zstd;q=', undefined],
    ['br', undefined],
    [';;;,,=,q', undefined],
  ])('%j chooses %s', (header, coding) => {
    expect(chooseCoding(header)).toBe(coding)
  })

  it('may have 8 kB', async () => {
    for (const header of [`${'x,'.repeat(4_000)}gzip`, `gzip;q=0.${'1'.repeat(8_000)}`, `gzip${';'.repeat(8_000)}`])
      expect(
        (await receive({ ...streams['the change log']!, headers: { ...lines, 'Accept-Encoding': header } })).coding,
      ).toBe('gzip')
  })

  it('compresses no page of JSON, no events and no refusal', async () => {
    const headers = { 'Accept-Encoding': 'gzip, zstd' }
    for (const path of ['/v1/changes', '/v1/people/p1', '/v1/people/nobody'])
      expect((await receive({ path, headers })).coding).toBeUndefined()
    const events = await open({ path: '/v1/changes', headers: { ...headers, Accept: 'text/event-stream' } })
    expect([events.headers['content-encoding'], events.headers.vary]).toEqual([undefined, undefined])
    events.destroy()
    const refused = await receive({ path: '/v1/changes?after=-1', headers: { ...headers, ...lines } })
    expect([refused.coding, JSON.parse(refused.bytes.toString()).error]).toEqual([undefined, 'invalid_parameter'])
  })

  it('counts for HEAD, which has no body, and over HTTP/1.0, which has no chunks', async () => {
    const headers = { ...lines, 'Accept-Encoding': 'gzip' }
    const head = await receive({ method: 'HEAD', path: '/v1/changes', headers })
    expect([head.coding, head.bytes.length]).toEqual(['gzip', 0])
    const socket = connect(Number(new URL(service.address).port), '127.0.0.1')
    socket.write(
      `GET /v1/changes HTTP/1.0\r\nAuthorization: Bearer ${shop.token}\r\nAccept: application/x-ndjson\r\nAccept-Encoding: gzip\r\n\r\n`,
    )
    const chunks: Buffer[] = []
    for await (const chunk of socket) chunks.push(chunk)
    const answer = Buffer.concat(chunks)
    const text = gunzipSync(answer.subarray(answer.indexOf('\r\n\r\n') + 4)).toString()
    expect(text).toBe((await receive(streams['the change log']!)).bytes.toString())
  })
})
