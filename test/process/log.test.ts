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
  makeFolder,
  parseAnswer,
  senderTo,
  tokenFrom,
} from '../support/process.ts'
import type { Reply, Send } from '../support/service.ts'

let kith: Kith
let address: string
let token: string
let send: Send
let url: string
let serverLog: string

beforeAll(async () => {
  const dataDir = join(await makeFolder(), '.kith')
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

/** What must be found in no log: each is part of one value that is sent. */
const canary = 'Xanthippe'
const number = '5550199321'

const person = {
  first_name: `${canary} A`,
  last_name: `${canary} B`,
  email: `${canary}@example.com`,
  mobile_prefix: '+39',
  mobile_number: number,
  date_of_birth: '1931-07-13',
  language: 'eo',
  attribute_values: { [`key ${canary}`]: `value ${canary}`, nested: { deep: [canary] } },
}

/** The lines of the log that speak of this request, once the last of them is there. */
async function linesOf(request_id: string | null): Promise<Record<string, unknown>[]> {
  const find = () => kith.said.stdout.split('\n').filter(line => line.includes(`"request_id":"${request_id}"`))
  await expect.poll(() => find().at(-1) ?? '').toContain('"msg":"request"')
  return find().map(line => JSON.parse(line))
}

/** Nothing of what was sent is in any log. */
async function expectSilence() {
  const logged = kith.said.stdout + kith.said.stderr + (await readFile(serverLog, 'utf8'))
  expect(logged.includes(canary.toLowerCase()) || logged.includes(canary)).toBe(false)
  expect(logged).not.toContain(number)
  expect(logged).not.toContain('1931-07-13')
  expect(logged).not.toContain(token)
  expect(logged).not.toContain(token.split('.')[2])
}

describe('a request is one line of the log', () => {
  it('with its id, method, route, status and time, and nothing else', async () => {
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
        durationMs: expect.any(Number),
        organization: 'default',
        msg: 'request',
      },
    ])
  })

  it('also when it is refused before it is known who asks, or where', async () => {
    for (const path of ['/v1/people/ada', `/v1/${canary}`, `/${canary}`, '/healthz']) {
      const response = await fetch(`${address}${path}`)
      const lines = await linesOf(response.headers.get('X-Request-Id'))
      expect(lines).toHaveLength(1)
      expect(lines[0]).toMatchObject({ method: 'GET', status: response.status, msg: 'request' })
    }
    await expectSilence()
  })
})

describe('the log is silent about people:', () => {
  const name = encodeURIComponent(`id ${canary}`)
  const cases: [string, number, () => Promise<Reply>][] = [
    ['a create', 201, () => send('POST', '/v1/people', { external_id: `id ${canary}`, ...person })],
    ['a read', 200, () => send('GET', `/v1/people/${name}?${canary}=${canary}`)],
    ['a patch from the query', 200, () => send('PATCH', `/v1/people/${name}?first_name=${canary}`)],
    ['a replacement', 200, () => send('PUT', `/v1/people/${name}`, person)],
    ['a name that is taken', 409, () => send('POST', '/v1/people', { external_id: `id ${canary}`, ...person })],
    ['broken JSON', 400, () => send('POST', '/v1/people', `{"first_name":"${canary}"`)],
    ['a wrong type', 400, () => send('POST', '/v1/people', { ...person, email: [canary] })],
    ['a broken rule', 400, () => send('POST', '/v1/people', { ...person, email: canary })],
    ['an unknown key', 400, () => send('POST', '/v1/people', { ...person, [canary]: canary })],
    ['a broken query', 400, () => send('PATCH', `/v1/people/${name}?first_name[${canary}`)],
    ['somebody who is not there', 404, () => send('GET', `/v1/people/not-${canary}`)],
    ['somebody who cannot be patched', 500, () => send('PATCH', `/v1/people/not-${canary}`, person)],
    ['an identifier of no form', 400, () => send('GET', `/v1/people/internal/${canary}`)],
    ['a stack that is not there', 404, () => send('GET', `/v1/stacks/${canary}/${canary}`)],
    ['an address that is not there', 404, () => send('GET', `/v1/${canary}/${name}`)],
    ['a method that is not there', 405, () => send('POST', `/v1/people/${name}`, person)],
    ['a path with a broken escape', 400, () => send('GET', `/v1/people/${canary}%E0%A4%A`)],
    ['too large a body', 413, () => send('POST', '/v1/people', { first_name: canary.repeat(200_000) })],
    ['too long a path', 414, () => send('GET', `/v1/people/${canary.repeat(1_000)}`)],
    ['a token of no form', 401, () => senderTo(address, canary)('GET', `/v1/people/${name}`)],
    ['a token of another signature', 401, () => senderTo(address, `${token}${canary}`)('GET', `/v1/people/${name}`)],
    ['a header', 404, () => send('GET', `/v1/people/a`, undefined, { 'X-Request-Id': `${canary}!`, Cookie: canary })],
    ['a removal', 200, () => send('DELETE', `/v1/people/${name}`)],
  ]

  it.each(cases)('%s, %i', async (_, status, ask) => {
    const answer = await ask()
    expect(answer.status).toBe(status)
    const lines = await linesOf(answer.headers.get('X-Request-Id'))
    expect(lines.filter(line => line.msg === 'request')).toMatchObject([{ status }])
    await expectSilence()
  })

  it('a fault that the database explains with the very values, 500', async () => {
    await query(url, `alter table entities add constraint nobody check (first_name <> '${person.first_name}')`)
    const { status, body, headers } = await send('POST', '/v1/people', { external_id: `x ${canary}`, ...person })
    expect(status).toBe(500)
    expect(body).toMatchObject({ error: 'operation_failed', errorstack: { request_id: body.request_id } })
    expect(JSON.stringify(body)).not.toMatch(new RegExp(`${canary}|nobody|constraint|entities`))
    const lines = await linesOf(headers.get('X-Request-Id'))
    expect(lines).toMatchObject([
      { level: 50, fault: 'database', code: '23514', constraint: 'nobody' },
      { status: 500 },
    ])
    await query(url, 'alter table entities drop constraint nobody')
    await expectSilence()
  })

  it('a full disk of the database, which it names as one', async () => {
    await query(
      url,
      `create function fill() returns trigger language plpgsql as
         $$ begin raise exception 'no room for %', new.first_name using errcode = 'disk_full'; end $$;
       create trigger fill before insert on entities for each row execute function fill()`,
    )
    const { status, headers } = await send('POST', '/v1/people', { ...person, external_id: `y ${canary}` })
    expect(status).toBe(503)
    expect(await linesOf(headers.get('X-Request-Id'))).toMatchObject([{ status: 503 }])
    expect(kith.said.stdout).toMatch(/"level":40,[^\n]*"msg":"The database has no disk space left\."/)
    await query(url, 'drop trigger fill on entities; drop function fill')
    await expectSilence()
  })
})

describe('what is no HTTP request is answered in the error envelope, and not quoted in the log:', () => {
  it.each([
    ['no HTTP at all', `${canary}\r\n\r\n`, 400],
    ['a broken header', `GET /healthz HTTP/1.1\r\nHost: kith\r\nX-${canary} broken\r\n\r\n`, 400],
    ['no host', `GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n`, 400],
    ['an expectation', `GET /healthz HTTP/1.1\r\nHost: kith\r\nConnection: close\r\nExpect: ${canary}\r\n\r\n`, 400],
    ['a broken length', `POST /v1/people HTTP/1.1\r\nHost: kith\r\nContent-Length: ${canary}\r\n\r\n`, 400],
    ['headers of over 16 KiB', `GET / HTTP/1.1\r\nHost: kith\r\nX-Long: ${canary.repeat(2_000)}\r\n\r\n`, 431],
    ['an address over all limits', `GET /${canary.repeat(2_000)} HTTP/1.1\r\nHost: kith\r\n\r\n`, 431],
  ])('%s', async (_, bytes, status) => {
    const answer = parseAnswer(await exchange(address, bytes))
    expect(answer.status).toBe(status)
    expect(answer.body).toMatchObject({ error: 'invalid_parameter', errorstack: null, details: [] })
    expect(answer.head.toLowerCase()).toContain(`x-request-id: ${answer.body.request_id}`)
    expect(JSON.stringify(answer.body)).not.toContain(canary)
    await expectSilence()
    expect((await fetch(`${address}/healthz`)).status).toBe(200)
  })
})
