import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEmbedded } from '../../src/db/embedded.ts'
import { query } from '../support/embedded-service.ts'
import {
  endProcesses,
  exchange,
  type Kith,
  launch,
  makeDataFolder,
  parseResponse,
  senderTo,
  tokenFrom,
} from '../support/process.ts'
import { eachText } from '../support/profile.ts'
import type { Reply, Send } from '../support/service.ts'

let kith: Kith
let address: string
let token: string
let send: Send
let url: string
let serverLog: string

beforeAll(async () => {
  const dataDir = await makeDataFolder()
  const environment = { KITH_DATA_DIR: dataDir, LOG_LEVEL: 'trace' }
  serverLog = join(dataDir, 'postgresql', 'server.log')
  kith = launch(environment)
  address = await kith.ready
  token = await tokenFrom(environment)
  send = senderTo(address, token)
  const shared = await startEmbedded({ dataDir, purpose: 'command', log: () => {} })
  url = shared.url
  await shared.stop()
})

afterAll(endProcesses)

/** Texts that no log may contain. Each is part of a value that the tests send. */
const canaryName = 'Xanthippe'
const canaryNumber = '5550199321'

const texts = {
  ...eachText(name => `${canaryName} ${name}`),
  email: `${canaryName}@example.com`,
  mobile_prefix: '+39',
  mobile_number: canaryNumber,
  date_of_birth: '1931-07-13',
  language: 'eo',
}
const person = {
  ...texts,
  attribute_values: { [`key ${canaryName}`]: `value ${canaryName}`, nested: { deep: [canaryName] } },
}

/** The log lines of one request. Waits for the last of them. */
async function linesOf(request_id: string | null): Promise<Record<string, unknown>[]> {
  const find = () => kith.output.stdout.split('\n').filter(line => line.includes(`"request_id":"${request_id}"`))
  await expect.poll(() => find().at(-1) ?? '').toContain('"msg":"request"')
  return find().map(line => JSON.parse(line))
}

/** Asserts that no log contains a value that the tests sent, or the token. */
async function expectNoPersonalData() {
  const logged = kith.output.stdout + kith.output.stderr + (await readFile(serverLog, 'utf8'))
  expect(logged.includes(canaryName.toLowerCase()) || logged.includes(canaryName)).toBe(false)
  expect(logged).not.toContain(canaryNumber)
  expect(logged).not.toContain('1931-07-13')
  expect(logged).not.toContain(token)
  expect(logged).not.toContain(token.split('.')[2])
}

describe('the log line of a request', () => {
  it('has its id, method, route, status, duration and organization, and nothing else', async () => {
    const headers = { 'X-Request-Id': 'chosen-by-the-client' }
    expect((await send('GET', '/v1/people/nobody?email=none', undefined, headers)).status).toBe(404)
    expect(await linesOf('chosen-by-the-client')).toEqual([
      {
        level: 30,
        time: expect.any(Number),
        request_id: 'chosen-by-the-client',
        method: 'GET',
        route: '/v1/people/{external_id}',
        status: 404,
        duration_ms: expect.any(Number),
        organization: 'default',
        msg: 'request',
      },
    ])
  })

  it('is also written for a request without a token or route', async () => {
    for (const path of ['/v1/people/ada', `/v1/${canaryName}`, `/${canaryName}`, '/healthz']) {
      const response = await fetch(`${address}${path}`)
      const lines = await linesOf(response.headers.get('X-Request-Id'))
      expect(lines).toHaveLength(1)
      expect(lines[0]).toMatchObject({ method: 'GET', status: response.status, msg: 'request' })
    }
    await expectNoPersonalData()
  })
})

describe('the log without personal data', () => {
  const name = encodeURIComponent(`id ${canaryName}`)
  const cases: [string, number, () => Promise<Reply>][] = [
    ['a create', 201, () => send('POST', '/v1/people', { external_id: `id ${canaryName}`, ...person })],
    ['a read', 200, () => send('GET', `/v1/people/${name}?${canaryName}=${canaryName}`)],
    ['a patch from the query', 200, () => send('PATCH', `/v1/people/${name}?first_name=${canaryName}`)],
    ['a replacement', 200, () => send('PUT', `/v1/people/${name}`, person)],
    [
      'an external_id that is taken',
      409,
      () => send('POST', '/v1/people', { external_id: `id ${canaryName}`, ...person }),
    ],
    ['malformed JSON', 400, () => send('POST', '/v1/people', `{"first_name":"${canaryName}"`)],
    ['a wrong type', 400, () => send('POST', '/v1/people', { ...person, email: [canaryName] })],
    ['an invalid value', 400, () => send('POST', '/v1/people', { ...person, email: canaryName })],
    ['an unknown field', 400, () => send('POST', '/v1/people', { ...person, [canaryName]: canaryName })],
    ['a malformed query', 400, () => send('PATCH', `/v1/people/${name}?first_name[${canaryName}`)],
    ['a read of a missing person', 404, () => send('GET', `/v1/people/not-${canaryName}`)],
    ['a patch of a missing person', 500, () => send('PATCH', `/v1/people/not-${canaryName}`, person)],
    ['a malformed identifier', 400, () => send('GET', `/v1/people/internal/${canaryName}`)],
    ['an unknown stack', 404, () => send('GET', `/v1/stacks/${canaryName}/${canaryName}`)],
    ['an unknown path', 404, () => send('GET', `/v1/${canaryName}/${name}`)],
    ['a method that the path does not have', 405, () => send('POST', `/v1/people/${name}`, person)],
    ['a path with a malformed escape', 400, () => send('GET', `/v1/people/${canaryName}%E0%A4%A`)],
    ['a body over the limit', 413, () => send('POST', '/v1/people', { first_name: canaryName.repeat(200_000) })],
    ['a path over the limit', 414, () => send('GET', `/v1/people/${canaryName.repeat(1_000)}`)],
    ['a malformed token', 401, () => senderTo(address, canaryName)('GET', `/v1/people/${name}`)],
    [
      'a token with an invalid signature',
      401,
      () => senderTo(address, `${token}${canaryName}`)('GET', `/v1/people/${name}`),
    ],
    [
      'values in headers',
      404,
      () => send('GET', `/v1/people/a`, undefined, { 'X-Request-Id': `${canaryName}!`, Cookie: canaryName }),
    ],
    ['a deletion', 200, () => send('DELETE', `/v1/people/${name}`)],
  ]

  it.each(cases)('has no value of %s, which returns %i', async (_, status, ask) => {
    const answer = await ask()
    expect(answer.status).toBe(status)
    const lines = await linesOf(answer.headers.get('X-Request-Id'))
    expect(lines.filter(line => line.msg === 'request')).toMatchObject([{ status }])
    await expectNoPersonalData()
  })

  it('has no value of a database error whose message quotes the row', async () => {
    await query(url, `alter table entities add constraint nobody check (first_name <> '${texts.first_name}')`)
    const { status, body, headers } = await send('POST', '/v1/people', { external_id: `x ${canaryName}`, ...person })
    expect(status).toBe(500)
    expect(body).toMatchObject({ error: 'operation_failed', errorstack: { request_id: body.request_id } })
    expect(JSON.stringify(body)).not.toMatch(new RegExp(`${canaryName}|nobody|constraint|entities`))
    const lines = await linesOf(headers.get('X-Request-Id'))
    expect(lines).toMatchObject([
      { level: 50, fault: 'database', code: '23514', constraint: 'nobody' },
      { status: 500 },
    ])
    await query(url, 'alter table entities drop constraint nobody')
    await expectNoPersonalData()
  })

  it('names a full disk of the database, and has no value of the error', async () => {
    await query(
      url,
      `create function fill() returns trigger language plpgsql as
         $$ begin raise exception 'no room for %', new.first_name using errcode = 'disk_full'; end $$;
       create trigger fill before insert on entities for each row execute function fill()`,
    )
    const { status, headers } = await send('POST', '/v1/people', { ...person, external_id: `y ${canaryName}` })
    expect(status).toBe(503)
    expect(await linesOf(headers.get('X-Request-Id'))).toMatchObject([{ status: 503 }])
    expect(kith.output.stdout).toMatch(/"level":40,[^\n]*"msg":"The database has no disk space left\."/)
    await query(url, 'drop trigger fill on entities; drop function fill')
    await expectNoPersonalData()
  })
})

describe('bytes that are not a valid HTTP request', () => {
  it.each([
    ['other than HTTP', `${canaryName}\r\n\r\n`, 400],
    ['with a malformed header', `GET /healthz HTTP/1.1\r\nHost: kith\r\nX-${canaryName} broken\r\n\r\n`, 400],
    ['without a Host header', `GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n`, 400],
    [
      'with an unknown Expect header',
      `GET /healthz HTTP/1.1\r\nHost: kith\r\nConnection: close\r\nExpect: ${canaryName}\r\n\r\n`,
      400,
    ],
    [
      'with a malformed Content-Length',
      `POST /v1/people HTTP/1.1\r\nHost: kith\r\nContent-Length: ${canaryName}\r\n\r\n`,
      400,
    ],
    ['with headers of over 16 KiB', `GET / HTTP/1.1\r\nHost: kith\r\nX-Long: ${canaryName.repeat(2_000)}\r\n\r\n`, 431],
    [
      'with a target over the limit',
      `GET /${canaryName.repeat(2_000)} HTTP/1.1\r\nHost: kith\r\nConnection: close\r\n\r\n`,
      414,
    ],
  ])('get an error in the envelope and stay out of the log: %s', async (_, bytes, status) => {
    const answer = parseResponse(await exchange(address, bytes))
    expect(answer.status).toBe(status)
    expect(answer.body).toMatchObject({ error: 'invalid_parameter', errorstack: null, details: [] })
    expect(answer.head.toLowerCase()).toContain(`x-request-id: ${answer.body.request_id}`)
    expect(JSON.stringify(answer.body)).not.toContain(canaryName)
    await expectNoPersonalData()
    expect((await fetch(`${address}/healthz`)).status).toBe(200)
  })
})
