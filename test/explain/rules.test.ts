import { beforeAll, expect, it } from 'vitest'
import type { Statement } from '../../src/db/db.ts'
import { findHoldersSql } from '../../src/entities/write/unique-sql.ts'
import { scanValuesSql } from '../../src/schema/violations-sql.ts'
import { explain } from '../support/explain.ts'
import { type Organization, useService } from '../support/service.ts'

// One large organization next to many small ones.
const people = 20_000
const smallOrganizations = 2_000
const maxRows = 40

const service = useService()
let shop: Organization
let index_id: number
beforeAll(async () => {
  shop = await service.organization()
  const code = { key: 'code', owner: 'people', type: 'text', indexed: true, unique: true } as const
  await shop.client.schema.attributes.create(code)
  const [attribute] = await service.sql<{ index_id: number }>(
    `select index_id from attributes where organization_id = $1 and key = 'code'`,
    [shop.id],
  )
  index_id = attribute!.index_id
  const insert = (organization: string, count: number) =>
    service.sql(
      `with e as (
         insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at, has_keys)
         select ${organization}, 0, ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'p' || i, true, 1,
           jsonb_build_object('code', 'c' || i), now(), now(), true
         from generate_series(1, ${count}) i
         returning organization_id, id, attributes
       )
       insert into terms select organization_id, ${index_id}, 's' || (attributes->>'code'), id from e`,
    )
  await insert(`${shop.id}`, people)
  await insert('1000 + i', smallOrganizations)
}, 120_000)

const person = (n: number) => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
const claim = (value: string, id?: string) => ({
  number: 0,
  stack_id: 0,
  index_id,
  term: `s${value}`,
  key: 'code',
  value,
  ...(id && { id }),
})

it('a unique value is looked up by its term, and a page of violations reads the rows of its scan', async () => {
  const claims = JSON.stringify([claim('c7', person(7)), claim('c77', person(77)), claim('free', person(9))])
  const reads: [Statement, unknown[]][] = [
    [findHoldersSql, [shop.id, claims]],
    [scanValuesSql, [shop.id, 0, person(5_000), 20, 'code', []]],
    [scanValuesSql, [shop.id, 0, person(5_000), 20, 'code', [1]]],
  ]
  await service.sql('analyze entities, terms')
  for (const [read, values] of reads)
    expect(await service.db.transaction(tx => explain(tx, read, values)), read.name).toBeLessThan(maxRows)
}, 120_000)
