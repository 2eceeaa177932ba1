import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, type Kith, launch, senderTo, tokenFrom } from '../support/process.ts'

// Linux tells of the peak; no other system does in this way.
const peak_mib = 400
const large_people = 500

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
  const send = senderTo(address, token)
  for (const [key, people] of [
    ['large', 'people'],
    ['wide', 'people'],
  ] as const)
    await send('POST', '/v1/schema/stacks', { key, kind: 'item', name: people })
  // Seven texts of 64 KiB each: 458,752 bytes, near the most that an entity may have.
  await insertPeople(
    large_people,
    `(select jsonb_object_agg('k' || k, repeat(chr(96 + k), 65536)) from generate_series(1, 7) k)`,
  )
}, 120_000)

afterAll(async () => {
  agent.destroy()
  await client.end()
  await endProcesses()
  await database.drop()
})

async function insertPeople(count: number, attributes: string) {
  await client.query(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at)
     select 1, 0, ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'p' || n, true, 1, ${attributes}, now(), now()
     from generate_series(1, $1::integer) n`,
    [count],
  )
}

const memoryMib = (field: 'VmHWM' | 'VmRSS') =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${kith.child.pid}/status`, 'utf8'))![1]) /
  1024

async function ask(method: string, path: string, body?: unknown): Promise<IncomingMessage> {
  const sent = request(`${address}${path}`, {
    agent,
    method,
    headers: { Authorization: `Bearer ${token}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
  })
  sent.on('error', () => {})
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.on('error', () => {})
  return response
}

/** Reads a page to its end without keeping it: how many items it had, and its last bytes. */
async function readPage(response: IncomingMessage) {
  const mark = '"state":"active"'
  let [items, bytes, carried] = [0, 0, '']
  for await (const chunk of response.setEncoding('latin1')) {
    const text = carried + chunk
    items += text.split(mark).length - 1
    bytes += chunk.length
    carried = text.slice(-mark.length - 8)
  }
  return { status: response.statusCode, items, bytes, end: carried }
}

const page = { cursor_configuration: { size: large_people } }
const all = { external_id: { $starts_with: 'p' } }

describe('memory', () => {
  it.each([
    ['list', '/v1/people/list', page],
    ['filter', '/v1/people/filter', { ...page, filter: all }],
  ])(
    'a page of 500 people of 458 kB each is whole, and bounded: %s',
    async (_, path, body) => {
      const read = await readPage(await ask('POST', path, body))
      console.log(read, memoryMib('VmHWM'))
      expect(read).toMatchObject({ status: 200, items: large_people })
      expect(read.end).toMatch(/"has_more":false\}\}$/)
      expect(memoryMib('VmHWM')).toBeLessThan(peak_mib)
    },
    60_000,
  )
})
