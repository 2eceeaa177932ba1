import pg from 'pg'
import { afterEach, expect } from 'vitest'
import { runInProcess } from './command.ts'
import type { Organization, Service } from './service.ts'

type Row = Record<string, unknown>

/** A connection of a role of PostgreSQL. */
export type Reader = { client: pg.Client; rows<R extends Row = Row>(text: string, values?: unknown[]): Promise<R[]> }

export type Created = { schema: string; role: string; password: string }

/** Views of the tests of a file. They and the connections end after each test. */
export function useViews(service: Service) {
  const clients: pg.Client[] = []
  const owners = new Set<string>()
  const kith = (words: string[], input = '') =>
    runInProcess(['views', ...words], { DATABASE_URL: service.databaseUrl }, process.cwd(), input)

  async function connect(user?: string, password?: string): Promise<Reader> {
    const url = new URL(service.databaseUrl)
    if (user !== undefined) url.username = user
    if (password !== undefined) url.password = password
    const client = new pg.Client({ connectionString: url.href })
    client.on('error', () => {})
    await client.connect()
    clients.push(client)
    return { client, rows: async (text, values = []) => (await client.query(text, values)).rows }
  }

  async function create({ key }: Organization, ...words: string[]): Promise<Created> {
    owners.add(key)
    const { code, stdout, stderr } = await kith(['create', '--org', key, ...words, '--json'])
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout)
  }

  async function read(organization: Organization, ...words: string[]): Promise<Reader> {
    const { role, password } = await create(organization, ...words)
    return connect(role, password)
  }

  afterEach(async () => {
    for (const client of clients.splice(0)) await client.end().catch(() => {})
    for (const key of owners) await kith(['drop', '--org', key, '--yes'])
    owners.clear()
  })

  return { kith, connect, create, read }
}

/** Expects that PostgreSQL refuses a statement with this code, in a message that has none of these texts. */
export async function expectRefused(
  { rows }: Reader,
  text: string,
  code: string | RegExp = '42501',
  secret = /canary/,
): Promise<void> {
  const error = await rows(text).then(
    found => new Error(`It was not refused: ${JSON.stringify(found)}`),
    (refusal: pg.DatabaseError) => refusal,
  )
  expect((error as pg.DatabaseError).code, `${text}: ${error.message}`).toMatch(code)
  expect(`${error.message} ${JSON.stringify(error)}`).not.toMatch(secret)
}
