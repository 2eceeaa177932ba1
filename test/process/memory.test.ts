import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { insertPeople } from '../support/many-people.ts'
import { endProcesses, type Kith, launch, tokenFrom } from '../support/process.ts'

/** The maximum of resident memory at default settings: at the peak, and after the load. */
const [maxPeakMib, maxRestMib] = [400, 250]
const peopleCount = 500
/** The size of a text. Each person has seven of them, close to the limit of an entity. */
const textBytes = 65_536
const largeAttributesSql = `(select jsonb_object_agg('k' || k, repeat(chr(96 + k), ${textBytes})) from generate_series(1, 7) k)`
const consentTypeCount = 1_466

let database: Awaited<ReturnType<typeof createTestDatabase>>
let client: pg.Client
let kith: Kith
let address: string
let token: string
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

beforeAll(async () => {
  database = await createTestDatabase()
  kith = launch({ DATABASE_URL: database.url, LOG_LEVEL: 'warn' })
  address = await kith.ready
  token = await tokenFrom({ DATABASE_URL: database.url })
  client = new pg.Client({ connectionString: database.url })
  client.on('error', () => {})
  await client.connect()
  await insertPeople((text, values) => client.query(text, values), 1, peopleCount, { attributes: largeAttributesSql })
}, 120_000)
afterEach(() => expect(memoryMib('VmHWM')).toBeLessThan(maxPeakMib))
afterAll(async () => {
  agent.destroy()
  await client.end()
  await endProcesses()
  await database.drop()
})

/** Reads the memory of the process from Linux: `VmHWM` is its peak so far, `VmRSS` its current size. */
function memoryMib(field: 'VmHWM' | 'VmRSS'): number {
  const status = readFileSync(`/proc/${kith.child.pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)![1]) / 1024
}

async function sendRequest(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  const outgoing = request(`${address}${path}`, {
    agent,
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
  })
  outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  // Some tests close the connection before the response ends.
  for (const end of [outgoing, response]) end.on('error', () => {})
  return response
}

/**
 * Reads a response to its end without storing it. Returns the status, the number of entities and the last 60
 * characters.
 */
async function readResponse(response: IncomingMessage) {
  const mark = '"state":"active"'
  let [items, carriedText, end] = [0, '', '']
  for await (const chunk of response.setEncoding('latin1')) {
    const text = carriedText + chunk
    items += text.split(mark).length - 1
    carriedText = text.slice(-mark.length + 1)
    end = (end + chunk).slice(-60)
  }
  return { status: response.statusCode!, items, end }
}

const pageRequest = { cursor_configuration: { size: peopleCount } }

it('returns a complete page of 500 people of 458 kB each', async () => {
  const { status, items, end } = await readResponse(await sendRequest('POST', '/v1/people/list', pageRequest))
  expect({ status, items }).toEqual({ status: 200, items: peopleCount })
  expect(end).toMatch(/"has_more":false\}\}$/)
}, 120_000)

/** Reads the first megabyte of a response and closes the connection. Returns the bytes read. */
async function readPart(response: IncomingMessage): Promise<number> {
  let bytes = 0
  for await (const chunk of response.iterator({ destroyOnReturn: true })) {
    bytes += chunk.length
    if (bytes > 1_000_000) break
  }
  return bytes
}

// A request that waits too long for its turn gets one of these statuses.
const isTimeout = (status: number) => status === 503 || status === 504

it('stays within its memory when 64 clients request such a page and are slow to read it', async () => {
  let startedCount = 0
  const answers = Array.from({ length: 64 }, async () => {
    const response = await sendRequest('POST', '/v1/people/list', pageRequest)
    startedCount += response.statusCode === 200 ? 1 : 0
    return response
  })
  // One organization gets at most half of the memory for responses.
  await expect.poll(() => startedCount, { timeout: 60_000 }).toBeGreaterThanOrEqual(15)
  // kith closes a connection that is not read for 10 s, which is as long as some of the requests wait for their turn.
  const readAnswer = async (answer: Promise<IncomingMessage>) => {
    const response = await answer
    if (isTimeout(response.statusCode!)) response.resume()
    else expect([response.statusCode, (await readPart(response)) > 1_000_000]).toEqual([200, true])
  }
  await Promise.all(answers.map(readAnswer))
}, 120_000)

it('stays within its memory when 256 large people are read at once', async () => {
  const answers = Array.from({ length: 256 }, async (_, index) =>
    readResponse(await sendRequest('GET', `/v1/people/p${index + 1}`)),
  )
  for (const { status, items } of await Promise.all(answers))
    if (!isTimeout(status)) expect({ status, items }).toEqual({ status: 200, items: 1 })
}, 120_000)

it('stays within its memory when 256 large people are patched and returned at once', async () => {
  const prefer = { Prefer: 'return=representation' }
  const answers = Array.from({ length: 256 }, async (_, index) =>
    readResponse(await sendRequest('PATCH', `/v1/people/p${index + 1}`, { first_name: 'Ada' }, prefer)),
  )
  for (const { status, items } of await Promise.all(answers))
    if (!isTimeout(status)) expect({ status, items }).toEqual({ status: 200, items: 1 })
}, 120_000)

it('returns a complete page of 500 people of an organization with 1,466 consent types', async () => {
  await client.query('update entities set stack_id = 1 where organization_id = 1')
  await client.query(
    `insert into consent_types (organization_id, id, key, name, state, mandatory, default_state, channels, created_at, updated_at, version)
     select 1, n, 'c' || n, 'c' || n, 'active', false, false,
       '[{"channel":"email","is_default":false},{"channel":"sms","is_default":false}]', now(), now(), 2
     from generate_series(2, ${consentTypeCount}) n`,
  )
  await client.query(
    `insert into entities (organization_id, stack_id, id, active, version, created_at, updated_at)
     select 1, 0, ('01900000-0000-7000-9000-' || lpad(to_hex(n), 12, '0'))::uuid, true, 1, now(), now()
     from generate_series(1, ${peopleCount}) n`,
  )
  await client.query('update change_heads set schema_version = schema_version + 1 where organization_id = 1')
  const { status, items, end } = await readResponse(await sendRequest('POST', '/v1/people/list', pageRequest))
  expect({ status, items }).toEqual({ status: 200, items: peopleCount })
  expect(end).toMatch(/"has_more":false\}\}$/)
}, 120_000)

it('releases the memory when it becomes idle', async () => {
  await expect.poll(() => memoryMib('VmRSS'), { timeout: 60_000 }).toBeLessThan(maxRestMib)
}, 120_000)
