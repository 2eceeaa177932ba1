import { beforeAll, describe, expect, it } from 'vitest'
import { type Statement, statement } from '../../src/db/db.ts'
import { readIncludedSql } from '../../src/entities/read/included-sql.ts'
import { countRelatedSql, readProjectedRelatedSql, readRelatedSql } from '../../src/entities/read/pagination-sql.ts'
import { projectionOf, projectionValues } from '../../src/entities/read/projection.ts'
import {
  countEntitiesSql,
  readPage,
  readProjectedPage,
  readProjectedPortionSql,
} from '../../src/entities/read/read-sql.ts'
import { parseFilter } from '../../src/filters/parse.ts'
import { countStatement } from '../../src/filters/select.ts'
import { reloadDefinitions } from '../../src/organizations/definitions.ts'
import { explain } from '../support/explain.ts'
import { type Organization, useOwnService } from '../support/service.ts'

const people = 20_000
/** Every person refers to one of these. */
const referrers = 100

const service = useOwnService()
let organization: Organization
let referrer: number
const idOf = (number: number) => `01900000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`
const ids = (first: number, count: number) => Array.from({ length: count }, (_, index) => idOf(first + index))

beforeAll(async () => {
  organization = await service.organization()
  const body = { owner: 'people', key: 'referrer', type: 'person' }
  referrer = (await organization.send('POST', '/v1/schema/attributes', body)).body.data.id
  const id = (n: string) => `('01900000-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`
  await service.sql(
    `insert into entities (organization_id, stack_id, id, external_id, active, version, email, attributes, created_at, updated_at)
     select $1, 0, ${id('i')}, 'p' || i, true, 1, 'p' || i || '@example.org', jsonb_build_object('city', 'city ' || i, 'note', i), now(), now()
     from generate_series(1, $2::integer) i`,
    [organization.id, people],
  )
  await service.sql(
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select $1, ${id('i')}, $2, 0, ${id('1 + i % $4::integer')}, 0 from generate_series(1, $3::integer) i`,
    [organization.id, referrer, people, referrers],
  )
  await service.sql('vacuum analyze')
}, 120_000)

const fields = ['external_id', 'attribute_values.city', 'attribute_values.referrer']
const projected = (names = fields) => projectionValues(projectionOf(names, 0))
const limit = 1_048_576

/** The maximum number of rows that a step of the statement reads. */
const rowsReadBy = (sent: Statement, values: unknown[]) =>
  service.db.transaction(tx => explain(tx, sent, [organization.id, ...values]))

/** The plan of a statement as the service plans it: for any values. */
const planOf = ({ text }: Statement, values: unknown[]) =>
  service.db.transaction(async tx => {
    const run = <R extends object>(sql: string) => tx.query<R & Record<string, unknown>>(statement('', sql), [])
    await run(`prepare planned as ${text}`)
    const literals = [organization.id, ...values].map(value => (Array.isArray(value) ? `'{${value}}'` : `'${value}'`))
    const lines = await run<{ 'QUERY PLAN': string }>(`explain (analyze, costs off) execute planned(${literals})`)
    await run('deallocate planned')
    return lines.map(line => line['QUERY PLAN']).join('\n')
  })

describe('a page of 50 whole people', () => {
  it.each(['asc', 'desc'] as const)('reads as many rows and their links, wherever it lies: %s', async direction => {
    expect(await rowsReadBy(readPage[direction], [0, idOf(people / 2), 51, limit])).toBeLessThan(110)
  })
})

describe('a page of 50 with fields', () => {
  it.each(['asc', 'desc'] as const)('reads as many rows, wherever it lies: %s', async direction => {
    const page = [0, idOf(people / 2), 51, limit, ...projected()]
    expect(await rowsReadBy(readProjectedPage[direction], page)).toBeLessThan(110)
    const related = [limit, 0, idOf(people / 2), 51, idOf(7), [referrer], [referrer]]
    expect(await rowsReadBy(readRelatedSql[direction], related)).toBeLessThan(220)
    expect(await rowsReadBy(readProjectedRelatedSql[direction], [...related, ...projected()])).toBeLessThan(220)
  })

  it('reads links only if a relationship is named, and no other attribute needs them', async () => {
    const links = /\bon links\b[^\n]*\n?[^\n]*/g
    const page = (names: string[]) => planOf(readProjectedPage.asc, [0, idOf(1), 51, limit, ...projected(names)])
    for (const names of [
      ['external_id', 'email'],
      ['attribute_values.city', 'version'],
    ]) {
      const scans = (await page(names)).match(links)!
      expect(scans.length).toBeGreaterThan(0)
      for (const scan of scans) expect(scan).toContain('never executed')
    }
    expect((await page(fields)).match(links)!.join()).toMatch(/rows=1(\.00)? loops=51/)
  })

  it('reads a portion of it by the ids', async () => {
    expect(await rowsReadBy(readProjectedPortionSql, [0, ids(1, 50), limit, ...projected()])).toBeLessThan(110)
  })
})

it('the entities that a page includes are read by the links of the page, each once', async () => {
  const values = [ids(1_001, 50), [referrer], 10_000, 8 * limit]
  expect(await rowsReadBy(readIncludedSql, values)).toBeLessThan(110)
  const shared = [ids(referrers, 500).filter((_, index) => index % 5 === 0), [referrer], 10_000, 8 * limit]
  expect(await rowsReadBy(readIncludedSql, shared)).toBeLessThan(220)
})

describe('a count', () => {
  it('of a stack reads an index only', async () => {
    const plan = await planOf(countEntitiesSql, [0])
    expect(plan).toMatch(/Index Only Scan using entities/)
    expect(plan).not.toMatch(/Seq Scan on entities/)
  })

  it('of related entities reads their links', async () => {
    expect(await rowsReadBy(countRelatedSql, [0, idOf(7), [referrer], [referrer]])).toBeLessThan(
      (2 * people) / referrers + 10,
    )
  })

  it('of a filter with an index reads its candidates, and the stack without one', async () => {
    const definitions = await reloadDefinitions(service.db, organization.id)
    const counted = async (filter: unknown) => {
      const { text, values } = countStatement(parseFilter(filter, definitions, 0).condition, definitions, 0)
      return service.db.transaction(async tx => {
        await tx.query(statement('', 'set local plan_cache_mode = force_custom_plan'), [])
        const lines = await tx.query<{ 'QUERY PLAN': string }>(statement('', `explain (analyze) ${text}`), values)
        return lines.map(line => line['QUERY PLAN']).join('\n')
      })
    }
    const indexed = await counted({ email: { $gte: 'p77', $lt: 'p771' }, 'attribute_values.note': { $exists: true } })
    expect(indexed).toMatch(/entities_email/)
    expect(indexed).toMatch(/Scan using entities_pkey on entities e .*\n\s*Index Cond: .*\(id = \w+\.id\)/)
    expect(indexed).not.toMatch(/Seq Scan on entities/)
    expect(await counted({ 'attribute_values.note': { $exists: true } })).toMatch(
      /(Scan using entities_\w+|Bitmap Heap Scan) on entities e/,
    )
  })
})
