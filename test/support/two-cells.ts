import { afterAll, beforeAll, expect } from 'vitest'
import type { Cell } from '../../src/cells/cell-pool.ts'
import { createTestDatabase } from './database.ts'
import { query } from './embedded-service.ts'
import { type Organization, type Service, startService } from './service.ts'

const names = ['main', 'b'] as const
export type CellName = (typeof names)[number]

/** A service with the cells `main` and `b`, each on a database of its own. */
export type TwoCells = {
  databases: Record<CellName, Awaited<ReturnType<typeof createTestDatabase>>>
  /** The settings of the service. */
  environment: Record<string, string>
  service: Service
  sql(name: CellName, text: string): Promise<Record<string, unknown>[]>
  cellOf(name: CellName): Cell
  /** How many rows of the organization each table of a cell has. */
  rowsIn(name: CellName, organization: Organization): Promise<Record<string, number>>
  /** The triggers of a move of the organization. */
  triggersIn(name: CellName, organization: Organization): Promise<Record<string, unknown>[]>
  /** Creates an organization in `main` with definitions, people, consents and index keys. */
  createFilled(key: string): Promise<Organization>
}

/** Starts the service before the tests of the file, and stops it after them. */
export function useTwoCells(settings: Record<string, string> = {}): TwoCells {
  const cells: TwoCells = {
    databases: {} as TwoCells['databases'],
    environment: {},
    service: {} as Service,
    sql: (name, text) => query(cells.databases[name].url, text),
    cellOf: name => cells.service.db.directory!.cells.find(cell => cell.name === name)!,
    async rowsIn(name, { id }) {
      const tables = await cells.sql(
        name,
        `select table_name as table from information_schema.columns where table_schema = 'public' and column_name = 'organization_id'`,
      )
      const counts: Record<string, number> = {}
      for (const { table } of tables) {
        const text = `select count(*)::integer as count from ${table} where organization_id = ${id}`
        const [row] = await cells.sql(name, text)
        if (row!.count !== 0) counts[table as string] = row!.count as number
      }
      return counts
    },
    triggersIn: (name, { id }) =>
      cells.sql(name, `select tgname from pg_trigger where tgname like 'kith_move_${id}_%'`),
    async createFilled(key) {
      const organization = await cells.service.organization(key)
      const created = async (path: string, body: object) => {
        const reply = await organization.send('POST', path, body)
        expect([reply.status, reply.body.details]).toEqual([201, undefined])
      }
      await created('/v1/schema/stacks', { key: 'orders', name: 'Orders', kind: 'item' })
      await created('/v1/schema/attributes', { key: 'city', owner: 'people', type: 'text', indexed: true })
      for (let index = 0; index < 30; index += 1)
        await created('/v1/people', {
          external_id: `p${index}`,
          email: `p${index}@example.org`,
          attribute_values: { city: `City ${index % 3}`, note: null },
          consents: [{ consent_type_id: 1, channel: 'email', state: index % 2 === 0 }],
        })
      return organization
    },
  }
  beforeAll(async () => {
    for (const name of names) cells.databases[name] = await createTestDatabase()
    const { main, b } = cells.databases
    Object.assign(cells.environment, { DATABASE_URL: main.url, KITH_CELLS: `b=${b.url}`, ...settings })
    cells.service = await startService(cells.environment, main.url)
  })
  afterAll(async () => {
    // Undefined if the start failed.
    await cells.service.stop?.()
    for (const name of names) await cells.databases[name]?.drop()
  })
  return cells
}
