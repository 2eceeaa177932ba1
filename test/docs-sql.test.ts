import { readFileSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'
import { beforeAll, describe, expect, it } from 'vitest'
import { shop as seeded } from '../cli/seed/definitions.ts'
import { renewViews } from '../src/sql-views/sql-views.ts'
import { useOwnService } from './support/service.ts'
import { createShop, type Shop } from './support/shop.ts'
import { useViews } from './support/sql-views.ts'

// Roles belong to the whole server, so those of a run have names of their own.
const suffix = `_${process.pid}`
const page = readFileSync(new URL('../docs/sql.md', import.meta.url), 'utf8').replaceAll(
  'kith_shop',
  `kith_shop${suffix}`,
)

/** The blocks of SQL, with the comment before each, and their statements. */
const blocks = [...page.matchAll(/^(?:<!-- (.*) -->\n)?```sql\n([\s\S]*?)^```$/gm)].map(([, comment, text]) => ({
  comment,
  statements: text!
    .split(/;$/m)
    .map(statement => statement.trim())
    .filter(statement => statement !== ''),
}))
const statementsOf = (comment?: string) =>
  blocks.filter(each => each.comment === comment).flatMap(each => each.statements)
const [questions, models] = [
  statementsOf().filter(text => !text.includes('{{')),
  statementsOf().filter(text => text.includes('{{')),
]

const service = useOwnService()
const { create, connect } = useViews(service)
let shop: Shop
beforeAll(async () => {
  shop = await createShop(service)
  const { ok } = shop
  for (const { key, kind } of seeded.stacks) await ok('POST', '/v1/schema/stacks', { key, kind })
  for (const { owner, key, type, target_stack, cardinality } of seeded.attributes)
    await ok('POST', '/v1/schema/attributes', { owner, key, type, target_stack, cardinality })
  const names = { first_name: 'Ada', email: 'ada@example.org' }
  await ok('POST', '/v1/people', { external_id: 'customer-1', ...names, attribute_values: { city: 'Oslo' } })
  const values = { buyer: 'customer-1', total: 12.5, placed_at: new Date().toISOString() }
  for (const external_id of ['o1', 'o2'])
    await ok('POST', '/v1/stacks/orders', { external_id, attribute_values: values })
})
const createNamed = () => create(shop, '--schema', `kith_shop${suffix}`)

describe('the SQL of docs/sql.md', () => {
  it('is complete', () => {
    expect([questions.length, models.length, statementsOf('as an administrator').length]).toEqual([5, 1, 4])
    expect(statementsOf('DuckDB').length).toBe(6)
    expect(blocks.flatMap(({ comment }) => comment ?? [])).toEqual(['as an administrator', 'DuckDB'])
  })

  it('asks questions that the role of the views may ask, and shows what the shop has', async () => {
    const { role, password } = await createNamed()
    const { rows } = await connect(role, password)
    const answers = []
    for (const question of questions) answers.push(await rows(question))
    expect(answers).toMatchObject([
      [{ external_id: 'customer-1', first_name: 'Ada', city: 'Oslo' }],
      [{ city: 'Oslo', count: '1' }],
      [{ city: 'Oslo', orders: '2', revenue: '25.0' }],
      [{ consent_type: 'marketing', channel: 'email', granted: '0', people: '1' }, { channel: 'sms' }],
      [{ count: '1' }],
    ])
  })

  it('lets dbt keep a table of the model, also after a renewal', async () => {
    const { schema } = await createNamed()
    try {
      for (const statement of statementsOf('as an administrator'))
        await service.sql(statement.replaceAll(/\bdbt\b/g, `dbt${suffix}`))
      const dbt = await connect(`dbt${suffix}`, 'change-me-too')
      const model = models[0]!.replaceAll(/\{\{ source\('kith', '(\w+)'\) \}\}/g, `${schema}.$1`)
      await dbt.client.query(`create table analytics.revenue_by_city as ${model}`)
      expect(await dbt.rows('select * from analytics.revenue_by_city')).toEqual([
        { city: 'Oslo', orders: '2', revenue: '25.0' },
      ])
      await shop.ok('POST', '/v1/schema/stacks', { key: 'later', kind: 'item' })
      expect(await renewViews(service.db, { organization_id: shop.id, schema_name: schema })).toBe(true)
      expect(await dbt.rows(model)).toHaveLength(1)
      await expect(dbt.rows('select * from public.entities')).rejects.toThrow('permission denied')
    } finally {
      await service.sql('drop schema if exists analytics cascade')
      await service.sql(`drop role if exists dbt${suffix}`)
    }
  })

  // The extension that attaches PostgreSQL is a download of DuckDB, so tables of a file stand for the views here.
  it('is understood by DuckDB, with tables in place of the views', async () => {
    const { schema, role, password } = await createNamed()
    const { rows } = await connect(role, password)
    const duckdb = await (await DuckDBInstance.create(':memory:')).connect()
    const [install, load, attach, ...others] = statementsOf('DuckDB')
    expect([install, load]).toEqual(['install postgres', 'load postgres'])
    expect(attach).toContain(`user=${role} password=…' as kith (type postgres, read_only, schema '${schema}')`)
    await duckdb.run(`attach ':memory:' as kith; create schema kith.${schema}`)
    for (const [table, columns] of [
      ['people', 'id uuid, city varchar'],
      ['orders', 'buyer uuid[], total double'],
    ] as const) {
      await duckdb.run(`create table kith.${schema}.${table} (${columns})`)
      for (const row of await rows(`select * from ${table}`)) {
        const values = columns.split(', ').map(column => row[column.split(' ')[0]!])
        const texts = values.map(value => `'${Array.isArray(value) ? `[${value}]` : value}'`)
        await duckdb.run(`insert into kith.${schema}.${table} values (${texts.join(', ')})`)
      }
    }
    const answers = []
    for (const statement of others) answers.push((await duckdb.runAndReadAll(statement)).getRowObjects())
    expect(answers.slice(1)).toEqual([[{ city: 'Oslo', people: 1n }], [{ city: 'Oslo', revenue: 25 }]])
  })
})
