import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createTestDatabase } from '../../test/support/database.ts'
import { maxShapes, runPrepared, shapePrefix } from './prepared.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let client: pg.Client
let described = 0

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

beforeEach(async () => {
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
  described = 0
  const { connection } = client as unknown as { connection: pg.Connection }
  connection.on('rowDescription', () => {
    described += 1
  })
  return () => client.end()
})

const pairs = {
  name: 'pairs',
  text: `select n, case when n > 1 then 'text ' || n end as text, jsonb_build_object('n', n) as json from generate_series(1, $1) n`,
}
const nothing = { name: 'nothing', text: 'create table if not exists nothing ()' }

it('returns the same shape for every run of a statement on a connection, and describes it once', async () => {
  for (const count of [2, 0, 3]) {
    const { rows } = await runPrepared(client, pairs, [count])
    const expected = [1, 2, 3].map(n => ({ n, text: n > 1 ? `text ${n}` : null, json: { n } }))
    expect(rows.map(row => ({ ...row }))).toEqual(expected.slice(0, count))
  }
  expect(described).toBe(1)
})

it('runs statements that are sent together without waiting for the first description', async () => {
  const all = await Promise.all([1, 2, 3].map(count => runPrepared(client, pairs, [count])))
  expect(all.map(({ rows }) => rows.length)).toEqual([1, 2, 3])
  expect((await runPrepared(client, pairs, [4])).rows).toHaveLength(4)
})

it('describes a statement that fails at first on its first success', async () => {
  const divide = { name: 'divide', text: 'select 6 / $1::integer as quotient' }
  for (const _ of [1, 2]) await expect(runPrepared(client, divide, [0])).rejects.toMatchObject({ code: '22012' })
  expect((await runPrepared(client, divide, [2])).rows).toEqual([{ quotient: 3 }])
  await expect(runPrepared(client, divide, [0])).rejects.toMatchObject({ code: '22012' })
  expect((await runPrepared(client, divide, [3])).rows).toEqual([{ quotient: 2 }])
})

it('supports a statement without rows, and unnamed statements with different texts', async () => {
  for (const _ of [1, 2]) expect((await runPrepared(client, nothing, [])).rows).toEqual([])
  for (const column of ['one', 'other'])
    expect((await runPrepared(client, { name: '', text: `select $1::text as ${column}` }, ['x'])).rows).toEqual([
      { [column]: 'x' },
    ])
})

it('keeps the statements of shapes that were used last, and closes the others', async () => {
  const shape = (n: number) => ({ name: `${shapePrefix}${n}`, text: `select $1::integer + ${n} as sum` })
  const run = async (n: number) => (await runPrepared(client, shape(n), [1])).rows[0]!.sum
  const kept = async () => {
    const { rows } = await client.query<{ name: string }>(
      'select name from pg_prepared_statements order by prepare_time',
    )
    return rows.map(({ name }) => name).filter(name => name.startsWith(shapePrefix))
  }
  for (let n = 0; n < maxShapes; n += 1) expect(await run(n)).toBe(n + 1)
  expect(await kept()).toHaveLength(maxShapes)
  expect(await run(0)).toBe(1)
  expect(await Promise.all([maxShapes, maxShapes + 1].map(run))).toEqual([maxShapes + 1, maxShapes + 2])
  const names = await kept()
  expect(names).toHaveLength(maxShapes)
  expect(names).toContain(shape(0).name)
  for (const n of [1, 2]) expect(names).not.toContain(shape(n).name)
  for (const n of [1, 2, 0]) expect(await run(n)).toBe(n + 1)
})

it('prepares a shape again after it was closed in a transaction that failed', async () => {
  const shape = (n: number) => ({ name: `${shapePrefix}${n}`, text: `select $1::integer / ${n} as quotient` })
  for (let n = 1; n <= maxShapes; n += 1) await runPrepared(client, shape(n), [n])
  await client.query('begin')
  await expect(runPrepared(client, { name: '', text: 'select 1 / $1::integer' }, [0])).rejects.toMatchObject({
    code: '22012',
  })
  await expect(runPrepared(client, shape(maxShapes + 1), [1])).rejects.toMatchObject({ code: '25P02' })
  await client.query('rollback')
  expect((await runPrepared(client, shape(1), [3])).rows).toEqual([{ quotient: 3 }])
  expect((await runPrepared(client, shape(maxShapes + 1), [0])).rows).toEqual([{ quotient: 0 }])
})
