import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, type Kith, launch, tokenFrom } from '../support/process.ts'

/** What the process may take at its default settings, whatever is asked of it, and afterwards. */
const [peakMib, restMib] = [400, 250]
const people = 500
/** Seven texts of 64 KiB, near the most that an entity may have. */
const textBytes = 65_536
const large = `(select jsonb_object_agg('k' || k, repeat(chr(96 + k), ${textBytes})) from generate_series(1, 7) k)`
const consent_types = 1_466

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
  await client.connect()
  await client.query(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at)
     select 1, 0, ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'p' || n, true, 1, ${large}, now(), now()
     from generate_series(1, ${people}) n`,
  )
}, 120_000)
afterEach(() => expect(memoryMib('VmHWM')).toBeLessThan(peakMib))
afterAll(async () => {
  agent.destroy()
  await client.end()
  await endProcesses()
  await database.drop()
})

/** `VmHWM` is the most that the process has had so far, `VmRSS` what it has. */
function memoryMib(field: 'VmHWM' | 'VmRSS'): number {
  const status = readFileSync(`/proc/${kith.child.pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)![1]) / 1024
}

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  const sent = request(`${address}${path}`, {
    agent,
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
  })
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  // A test ends some of them itself.
  for (const end of [sent, response]) end.on('error', () => {})
  return response
}

/** Reads an answer to its end without keeping it: how many entities it shows, and how it ends. */
async function read(response: IncomingMessage) {
  const mark = '"state":"active"'
  let [items, carried, end] = [0, '', '']
  for await (const chunk of response.setEncoding('latin1')) {
    const text = carried + chunk
    items += text.split(mark).length - 1
    carried = text.slice(-mark.length + 1)
    end = (end + chunk).slice(-60)
  }
  return { status: response.statusCode!, items, end }
}

const page = { cursor_configuration: { size: people } }

it('a page of 500 people of 458 kB each is answered whole', async () => {
  const { status, items, end } = await read(await ask('POST', '/v1/people/list', page))
  expect({ status, items }).toEqual({ status: 200, items: people })
  expect(end).toMatch(/"has_more":false\}\}$/)
}, 120_000)

/** Reads the beginning of an answer, and hangs up. */
async function readPart(response: IncomingMessage): Promise<number> {
  let bytes = 0
  for await (const chunk of response.iterator({ destroyOnReturn: true })) {
    bytes += chunk.length
    if (bytes > 1_000_000) break
  }
  return bytes
}

// A client whose turn does not come in time is told so.
const isLate = (status: number) => status === 503 || status === 504

it('64 clients ask for such a page at once, and read nothing of it until as many as there is room for have begun', async () => {
  let begun = 0
  const answers = Array.from({ length: 64 }, async () => {
    const response = await ask('POST', '/v1/people/list', page)
    begun += response.statusCode === 200 ? 1 : 0
    return response
  })
  // An organization alone has half of the room.
  await expect.poll(() => begun, { timeout: 60_000 }).toBeGreaterThanOrEqual(15)
  for (const answer of answers) {
    const response = await answer
    if (isLate(response.statusCode!)) response.resume()
    else expect([response.statusCode, (await readPart(response)) > 1_000_000]).toEqual([200, true])
  }
}, 120_000)

it('256 large people are read at once, each by itself', async () => {
  const answers = Array.from({ length: 256 }, async (_, index) => read(await ask('GET', `/v1/people/p${index + 1}`)))
  for (const { status, items } of await Promise.all(answers))
    if (!isLate(status)) expect({ status, items }).toEqual({ status: 200, items: 1 })
}, 120_000)

it('256 large people are changed at once, and shown', async () => {
  const prefer = { Prefer: 'return=representation' }
  const answers = Array.from({ length: 256 }, async (_, index) =>
    read(await ask('PATCH', `/v1/people/p${index + 1}`, { first_name: 'Ada' }, prefer)),
  )
  for (const { status, items } of await Promise.all(answers))
    if (!isLate(status)) expect({ status, items }).toEqual({ status: 200, items: 1 })
}, 120_000)

it('a page of 500 people of an organization with 1,466 consent types is answered whole', async () => {
  await client.query('update entities set stack_id = 1 where organization_id = 1')
  await client.query(
    `insert into consent_types (organization_id, id, key, name, state, mandatory, default_state, channels, created_at, updated_at)
     select 1, n, 'c' || n, 'c' || n, 'active', false, false,
       '[{"channel":"email","is_default":false},{"channel":"sms","is_default":false}]', now(), now()
     from generate_series(2, ${consent_types}) n`,
  )
  await client.query(
    `insert into entities (organization_id, stack_id, id, active, version, created_at, updated_at)
     select 1, 0, ('01900000-0000-7000-9000-' || lpad(to_hex(n), 12, '0'))::uuid, true, 1, now(), now()
     from generate_series(1, ${people}) n`,
  )
  await client.query('update change_heads set schema_version = schema_version + 1 where organization_id = 1')
  const { status, items, end } = await read(await ask('POST', '/v1/people/list', page))
  expect({ status, items }).toEqual({ status: 200, items: people })
  expect(end).toMatch(/"has_more":false\}\}$/)
}, 120_000)

it('gives the memory back when nothing is asked of it any more', async () => {
  await expect.poll(() => memoryMib('VmRSS'), { timeout: 60_000 }).toBeLessThan(restMib)
}, 120_000)
