import { beforeAll, expect, it } from 'vitest'
import { findEntitySql, findFirstBearerSql } from '../../src/changes/sql.ts'
import { readContactFacts, readManyContactFactsSql, readPastContactFacts } from '../../src/consents/contactable-sql.ts'
import { readConsentHistory } from '../../src/consents/recorded-answers-sql.ts'
import { type Statement, statement } from '../../src/db/db.ts'
import { findPersonByAnyIdentifier, readPeopleByAnyIdentifier } from '../../src/entities/read/read-sql.ts'
import {
  countFirstAliasSql,
  deleteAliasesSql,
  insertAliasesSql,
  readAliasesSql,
  readBearersWithAliasesSql,
  readRowsWithAliasesSql,
} from '../../src/entities/write/alias-sql.ts'
import { parseFilter } from '../../src/filters/parse.ts'
import { matchingStatements } from '../../src/filters/select.ts'
import { readLinkedPersonSql } from '../../src/links/sql.ts'
import { reloadDefinitions } from '../../src/organizations/definitions.ts'
import { explain } from '../support/explain.ts'
import { type Organization, useService } from '../support/service.ts'

// One large organization, in which each person has an alias and a merged identifier, next to many small ones.
const people = 20_000
const smallOrganizations = 2_000
const maxRows = 30

const service = useService()
let shop: Organization
const uuidOf = (kind: number, i: string) => `('0190000${kind}-0000-7000-8000-' || lpad(to_hex(${i}), 12, '0'))::uuid`
beforeAll(async () => {
  shop = await service.organization()
  await shop.client.schema.attributes.create({ key: 'referrer', owner: 'people', type: 'person' })
  const insert = async (organization: string, count: number) => {
    for (const insertion of [
      `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at)
       select ${organization}, 0, ${uuidOf(0, 'i')}, 'p' || i, true, 1, now(), now()`,
      `insert into aliases (organization_id, external_id, person_id, merge_id, created_at)
       select ${organization}, 'a' || i, ${uuidOf(0, 'i')}, i, now()`,
      `insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at)
       select ${organization}, i, ${uuidOf(1, 'i')}, ${uuidOf(0, 'i')}, ${uuidOf(0, 'i')}, i, now()`,
      `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after, actor,
         request_id)
       select ${organization}, 100 + i, now(), 'entity', 0, ${uuidOf(1, 'i')}, 'merge', 1, jsonb_build_object('external_id', 'a' || i), '{}',
         'a', 'r'`,
    ])
      await service.sql(`${insertion} from generate_series(1, ${count}) i`)
  }
  await insert(`${shop.id}`, people)
  await insert('100000 + i', smallOrganizations)
}, 120_000)

const person = '01900000-0000-7000-8000-000000000007'
const merged = '01900001-0000-7000-8000-000000000007'
const asked = JSON.stringify([
  { stack_id: 0, external_id: 'a7' },
  { stack_id: 0, external_id: 'p8' },
  { stack_id: 0, external_id: 'nobody' },
  { stack_id: 0, id: merged },
  { stack_id: 0, id: person },
  { stack_id: 3, external_id: 'a7' },
])
const added = JSON.stringify([{ external_id: 'new', person_id: person, merge_id: null }])
const page = [1_000_000, 1, 'email', 100, 1_048_576]

const statements = (id: number) =>
  [
    [readRowsWithAliasesSql, [id, asked]],
    [readAliasesSql, [id, asked]],
    [readBearersWithAliasesSql, [id, asked]],
    [countFirstAliasSql, [id]],
    [insertAliasesSql, [id, added, '2026-01-01T00:00:00Z']],
    [deleteAliasesSql, [id, JSON.stringify([{ person_id: person, external_id: null }])]],
    [readPeopleByAnyIdentifier.external_id, [id, ['a7', 'p8', 'nobody'], 10_000]],
    [readPeopleByAnyIdentifier.id, [id, [merged, person], 10_000]],
    [findPersonByAnyIdentifier.external_id, [id, 'a7']],
    [findPersonByAnyIdentifier.id, [id, merged]],
    [findEntitySql, [id, 0, 'a7']],
    [findFirstBearerSql, [id, 'a7']],
    [readContactFacts.external_id, [id, 'a7', 1, 'email']],
    [readManyContactFactsSql, [id, ['a7', 'p8', 'nobody'], 1, 'email']],
    [readContactFacts.id, [id, merged, 1, 'email']],
    [readPastContactFacts.external_id, [id, 'a7', 1, 'email', 100, 'email']],
    [readConsentHistory.external_id, [id, 'a7', ...page]],
    [readLinkedPersonSql.external_id, [id, 'a7']],
    [readLinkedPersonSql.id, [id, merged]],
  ] as const

it('reads only a few rows to find people by further identifiers, whatever PostgreSQL knows of the tables', async () => {
  const rowsOf = ([run, values]: readonly [Statement, unknown[]]) =>
    service.db.transaction(tx => explain(tx, run, values))
  // kith itself keeps the statistics of entities, and autovacuum follows the merges, of which a request makes one.
  for (const statistics of ['entities, merges', 'entities, merges, aliases', 'entities, merges, aliases, changes']) {
    await service.sql(`analyze ${statistics}`)
    for (const run of statements(shop.id))
      expect(await rowsOf(run as never), `${statistics}: ${run[0].name}`).toBeLessThan(maxRows)
  }
}, 120_000)

it('reads only a few rows to filter by further identifiers', async () => {
  await service.sql('analyze entities, aliases, merges, links')
  const definitions = await reloadDefinitions(service.db, shop.id)
  expect(definitions.has_aliases).toBe(true)
  for (const filter of [
    { external_id: 'a7' },
    { external_id: { $in: ['a7', 'p8', 'nobody'] } },
    { 'attribute_values.referrer': { $some: { external_id: 'a7' } } },
  ]) {
    const { condition } = parseFilter(filter, definitions, 0)
    const statements = matchingStatements(condition, definitions, 0, { size: 10, direction: 'asc' })
    const { text, values } = statements.rows('00000000-0000-0000-0000-000000000000', 11, 0)
    const rows = await service.db.transaction(tx => explain(tx, statement('', text), values))
    expect(rows, JSON.stringify(filter)).toBeLessThan(maxRows)
  }
})
