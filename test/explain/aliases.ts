import { expect, it } from 'vitest'
import { findFirstBearerSql } from '../../src/changes/sql.ts'
import { readLinkedPersonSql } from '../../src/consent-pages/sql.ts'
import { readContactFacts, readPastContactFacts } from '../../src/consents/contactable-sql.ts'
import { readConsentHistory } from '../../src/consents/recorded-answers-sql.ts'
import { contextOf } from '../../src/db/context.ts'
import { readBearersWithAliasesSql } from '../../src/entities/bearers-sql.ts'
import { findPersonByAnyIdentifier, readPeopleByAnyIdentifier } from '../../src/entities/read/read-sql.ts'
import { readRowsWithAliasesSql } from '../../src/entities/write/load/load-sql.ts'
import { countFirstAliasSql, deleteAliasesSql, insertAliasesSql } from '../../src/entities/write/store/store-sql.ts'
import { reloadDefinitions } from '../../src/organizations/definitions.ts'
import { readFilteredPage } from '../../src/queries/pages/page.ts'
import { expectReads, planOf } from './explain.ts'
import { statementsOf } from './sent.ts'
import { mergedId, personId, type World } from './world.ts'

const maxRows = 30

const [person, merged] = [personId(7), mergedId(7)]
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
    [readBearersWithAliasesSql, [id, asked]],
    [countFirstAliasSql, [id]],
    [insertAliasesSql, [id, added, '2026-01-01T00:00:00Z']],
    [deleteAliasesSql, [id, JSON.stringify([{ person_id: person, external_id: null }])]],
    [readPeopleByAnyIdentifier.external_id, [id, ['a7', 'p8', 'nobody'], 10_000, false]],
    [readPeopleByAnyIdentifier.id, [id, [merged, person], 10_000, true]],
    [findPersonByAnyIdentifier.external_id, [id, 'a7']],
    [findPersonByAnyIdentifier.id, [id, merged]],
    [findFirstBearerSql, [id, 'a7']],
    [readContactFacts.external_id, [id, ['a7', 'p8', 'nobody'], 1, 'email', '1:email']],
    [readContactFacts.id, [id, [merged], 1, 'email', '1:email']],
    [readPastContactFacts.external_id, [id, 'a7', 1, 'email', 100, 'email']],
    [readConsentHistory.external_id, [id, 'a7', ...page]],
    [readLinkedPersonSql.external_id, [id, 'a7']],
    [readLinkedPersonSql.id, [id, merged]],
  ] as const

/** Finds people by further identifiers. */
export function testAliases(world: World): void {
  it('reads only a few rows to find people by further identifiers, whatever PostgreSQL knows of the tables', async () => {
    const { service, merged } = world
    // kith itself keeps the statistics of entities, and autovacuum follows the merges, of which a request makes one.
    for (const unknownTables of [['links', 'consent_history', 'aliases', 'changes'], ['changes'], []])
      for (const [sent, values] of statements(merged.id))
        await expectReads(service.db, sent, values, maxRows, { unknownTables })
  })

  it('reads only a few rows to filter by further identifiers', async () => {
    const { service, merged } = world
    const definitions = await reloadDefinitions(contextOf(service.db, merged.id))
    expect(definitions.has_aliases).toBe(true)
    for (const filter of [
      { external_id: 'a7' },
      { external_id: { $in: ['a7', 'p8', 'nobody'] } },
      { 'attribute_values.referrer': { $some: { external_id: 'a7' } } },
    ]) {
      const request = { stack_id: 0, filter, position: { size: 10, direction: 'asc' as const } }
      const sent = await statementsOf(service.db, merged.id, context => readFilteredPage(context, request))
      expect(sent).toHaveLength(1)
      const { rows, scanned, text } = await planOf(service.db, sent[0]!)
      expect(scanned, text).toEqual([])
      expect(rows, text).toBeLessThanOrEqual(maxRows)
    }
  })
}
