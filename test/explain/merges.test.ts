import { beforeAll, expect, it } from 'vitest'
import type { Statement } from '../../src/db/db.ts'
import {
  findMergeSql,
  findPeopleSql,
  moveIdentifiersSql,
  moveLinksToSql,
  orderReturnedLinksSql,
  readIsEmptiedSql,
  readLinksToSql,
  readMergedIdsSql,
  readMergesIntoSql,
  readOwnAnswersSql,
  readSourcesSql,
  readTargetsSql,
  readWrittenKeysSql,
  returnIdentifiersSql,
  returnLinksToSql,
} from '../../src/identity/merge-sql.ts'
import { explain } from '../support/explain.ts'
import { type Organization, useService } from '../support/service.ts'

// Ten entities link to each of the two people, in an organization with many links, aliases and merges, next to many small ones.
const people = 20_000
const linksPerPerson = 10
const smallOrganizations = 2_000
const maxRows = 100

const idOf = (n: number) => `0190000a-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
const sqlId = (n: string) => `('0190000a-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`

const service = useService()
let shop: Organization
beforeAll(async () => {
  shop = await service.organization()
  const insertPeople = (organization: string, count: number) =>
    service.sql(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at, has_keys)
       select ${organization}, 0, ${sqlId('i')}, 'p' || i, true, 1, '{}', now(), now(), true from generate_series(1, ${count}) i`,
    )
  await insertPeople(`${shop.id}`, people)
  await insertPeople('1000 + i', smallOrganizations)
  const { id } = shop
  await service.sql(
    `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
     select ${id}, ${sqlId(`1 + (i * 7 + k * 1999) % ${people}`)}, 1, 0, ${sqlId('i')}, k
     from generate_series(1, ${people}) i cross join generate_series(1, ${linksPerPerson}) k on conflict do nothing`,
  )
  await service.sql(
    `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, after, actor, request_id)
     select ${id}, i * 3 + v, now(), 'entity', 0, ${sqlId('i')}, case v when 0 then 'create' else 'update' end, v + 1, '{"email": "x"}', 'a', 'r'
     from generate_series(1, ${people}) i cross join generate_series(0, 2) v`,
  )
  await service.sql(
    `insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at, undo)
     select ${id}, i, ${sqlId(`${people} + i`)}, ${sqlId('i')}, ${sqlId('i')}, i, now(), '{}' from generate_series(1, 5000) i`,
  )
  await service.sql(
    `insert into aliases (organization_id, external_id, person_id, merge_id, created_at)
     select ${id}, 'm' || i, ${sqlId('i')}, i, now() from generate_series(1, 5000) i`,
  )
  await service.sql(
    `insert into consent_history (organization_id, person_id, version, consent_type_id, channel, state, source, at, actor, request_id)
     select ${id}, ${sqlId('i')}, 1, 1, 'email', true, 'entry', now(), 'a', 'r' from generate_series(1, ${people}) i`,
  )
}, 120_000)

const [ada, bob] = [idOf(7), idOf(8)]

const statements = (id: number): (readonly [Statement, unknown[]])[] => {
  const names = JSON.stringify([
    { position: 0, external_id: 'p7' },
    { position: 1, external_id: 'm8' },
    { position: 2, id: idOf(people + 9) },
  ])
  const moved = Array.from({ length: linksPerPerson }, (_, k) => ({
    source_id: idOf(1 + ((7 * 7 + (k + 1) * 1999) % people)),
    attribute_id: 1,
    position: k,
    kept: null,
  }))
  return [
    [findPeopleSql, [id, names]],
    [readLinksToSql, [id, bob, 1_000]],
    [
      readSourcesSql,
      [
        id,
        JSON.stringify([
          { stack_id: 0, id: ada },
          { stack_id: 0, id: bob },
        ]),
      ],
    ],
    [moveLinksToSql, [id, bob, ada]],
    [moveIdentifiersSql, [id, bob, ada]],
    [findMergeSql, [id, 'm8', ada, bob]],
    [readMergedIdsSql, [id, bob]],
    [readMergesIntoSql, [id, bob]],
    [readWrittenKeysSql, [id, bob, 1, [9]]],
    [readIsEmptiedSql, [id, bob, 1]],
    [readOwnAnswersSql, [id, bob]],
    [readTargetsSql, [id, JSON.stringify([{ position: 0, stack_id: 0, id: idOf(people + 7) }])]],
    [returnIdentifiersSql, [id, idOf(people + 7), ['m9'], [9], ['m7'], ada]],
    [returnLinksToSql, [id, ada, JSON.stringify(moved), [idOf(people + 7)], [ada], 1, idOf(people + 7)]],
    [orderReturnedLinksSql, [id, ada, JSON.stringify(moved), [idOf(people + 7)], [ada], 1]],
  ]
}

it('reads only the rows of the two people and of their links to merge and unmerge them', async () => {
  await service.sql('analyze entities, links, changes, merges, aliases, consent_history')
  for (const [statement, values] of statements(shop.id)) {
    const rows = await service.db.transaction(tx => explain(tx, statement, values))
    expect(rows, statement.name).toBeLessThan(maxRows)
  }
}, 120_000)
