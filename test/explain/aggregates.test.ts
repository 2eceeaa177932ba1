import { beforeAll, describe, expect, it } from 'vitest'
import { statement } from '../../src/db/db.ts'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import { parseAggregate } from '../../src/filters/aggregate-parse.ts'
import type { AggregateBody } from '../../src/filters/aggregate-schema.ts'
import { aggregateStatements } from '../../src/filters/aggregate-select.ts'
import type { Query } from '../../src/filters/select.ts'
import { countFittingSql, countObservedSql } from '../../src/observed/sql.ts'
import { type Definitions, reloadDefinitions } from '../../src/organizations/definitions.ts'
import { explain as explainStatement } from '../support/explain.ts'
import { type Service, useOwnService } from '../support/service.ts'

const people = 30_000

const service = useOwnService()
let organization: Awaited<ReturnType<Service['organization']>>
let definitions: Definitions
beforeAll(async () => {
  organization = await service.organization()
  const attribute = (key: string, type: string, indexed = true) =>
    organization.send('POST', '/v1/schema/attributes', { owner: 'people', key, type, indexed })
  await attribute('city', 'text')
  await attribute('score', 'number')
  await attribute('referrer', 'person', false)
  const other = await service.organization()
  for (const { id } of [organization, other])
    await service.sql(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at)
       select $1, 0, ('0190' || lpad(to_hex(i), 4, '0') || '-0000-7000-8000-000000000000')::uuid, 'p' || i, true, 1,
         jsonb_build_object('city', 'city ' || i % 100, 'score', i, 'number', i), now(), now()
       from generate_series(0, $2::integer - 1) i`,
      [id, people],
    )
  await service.sql(
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select $1, e.id, 3, 0, ('0190' || lpad(to_hex(n.n % 50), 4, '0') || '-0000-7000-8000-000000000000')::uuid, 0
     from entities e cross join lateral (select substr(e.external_id, 2)::integer as n) n
     where e.organization_id = $1 and e.stack_id = 0`,
    [organization.id],
  )
  await backfillIndexes(service.db)
  await service.sql('vacuum analyze')
  definitions = await reloadDefinitions(service.db, organization.id)
}, 300_000)

const statementsOf = (body: AggregateBody) => aggregateStatements(parseAggregate(body, definitions, 0), definitions, 0)

const explain = ({ text, values }: Query) =>
  service.db.transaction(async tx => {
    await tx.query(statement('', 'set local plan_cache_mode = force_custom_plan'), [])
    const lines = await tx.query<{ 'QUERY PLAN': string }>(statement('', `explain (analyze, buffers) ${text}`), values)
    return lines.map(line => line['QUERY PLAN']).join('\n')
  })

const field = (key: string) => `attribute_values.${key}`

describe('an aggregate', () => {
  it('reads the entities of its organization once', async () => {
    const plan = await explain(
      statementsOf({ group_by: [field('city'), 'state'], measures: [{ op: 'sum', field: field('score') }] }).aggregate(
        false,
      ),
    )
    expect(plan).not.toMatch(/Seq Scan on entities/)
    expect(plan.match(/Scan( using \S+)? on entities /g)).toHaveLength(1)
  })

  it('looks up the candidates of an index', async () => {
    const { countCandidates, aggregate } = statementsOf({
      filter: { [field('score')]: { $gte: 100, $lt: 200 } },
      group_by: [field('city')],
    })
    expect(await explain(countCandidates!)).toMatch(/terms_pkey/)
    const plan = await explain(aggregate(true))
    expect(plan).toMatch(/terms_pkey/)
    expect(plan).toMatch(/Index Cond: .*\(id = candidate\.id\)/)
    expect(plan).not.toMatch(/Seq Scan on (entities|terms)/)
  })

  it('counts no more candidates than it may look up', async () => {
    const { countCandidates } = statementsOf({ filter: { [field('score')]: { $gte: 0 } }, group_by: ['state'] })
    expect(await explain(countCandidates!)).toMatch(/Limit/)
  })

  it('stops at the group that is too much, before it has read the stack', async () => {
    const { probe } = statementsOf({ group_by: [field('number')] })
    const rows = /CTE Scan on g .*actual .*rows=(\d+)/.exec(await explain(probe!))
    expect(Number(rows![1])).toBe(10_001)
    const read = /Index Scan using entities_pkey on entities \S+ .*actual .*rows=(\d+)/.exec(await explain(probe!))
    expect(Number(read![1])).toBe(10_001)
  })
})

describe('the statements of observed keys', () => {
  it('read a range of the log', async () => {
    await organization.send('PATCH', '/v1/people/p1', { attribute_values: { shoe: 1 } })
    const read = await service.db.transaction(tx =>
      explainStatement(tx, countObservedSql, [organization.id, 0, 100, 10_000]),
    )
    expect(read).toBeLessThan(50)
  })

  it('read the entities of one stack', async () => {
    const read = await service.db.transaction(tx =>
      explainStatement(tx, countFittingSql, [organization.id, 0, 'number', 'text', false, 10]),
    )
    expect(read).toBeLessThanOrEqual(people + 1)
  })
})
