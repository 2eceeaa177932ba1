import { it } from 'vitest'
import { findOtherHoldersSql } from '../../src/changes/people-sql.ts'
import { readContactFacts } from '../../src/consents/contactable-sql.ts'
import { readConsentHistory } from '../../src/consents/recorded-answers-sql.ts'
import { readConsentStatisticsSql } from '../../src/consents/statistics-sql.ts'
import type { Statement } from '../../src/db/db.ts'
import { readAnswersSql, readUnsealedSql } from '../../src/ledger/sql.ts'
import { findSubject } from '../../src/rights/dossier-sql.ts'
import { findToEraseSql } from '../../src/rights/erasure/erasure-sql.ts'
import { names } from '../support/writes.ts'
import { expectReads } from './explain.ts'
import { base, people, personId, type World } from './world.ts'

const asked = [...names('p', 50), ...names('nobody', 50)]
const [person, gone] = [personId(7), personId(0xaaaa)]
const page = [1_000_000, null, null, 100, 1_048_576]

/** A person has three changes, an answer and an alias. */
const maxRowsOfPerson = 8

const statements: [Statement, unknown[], number][] = [
  [readContactFacts.external_id, [asked, 1, 'email', '1:email'], 100],
  [readContactFacts.id, [[person], 1, 'email', '1:email'], maxRowsOfPerson],
  [readContactFacts.id, [[gone], 1, 'email', '1:email'], maxRowsOfPerson],
  [readConsentHistory.id, [person, ...page], maxRowsOfPerson],
  [readConsentHistory.external_id, ['p7', ...page], maxRowsOfPerson],
  [readConsentHistory.external_id, ['nobody', ...page], maxRowsOfPerson],
  [findToEraseSql.id, [person], maxRowsOfPerson],
  [findSubject.id, [person], maxRowsOfPerson],
  // The name of a person, a further identifier, and a name that no person has.
  ...['p7', 'a7', 'nobody'].flatMap((name): [Statement, unknown[], number][] => [
    [readContactFacts.external_id, [[name], 1, 'email', '1:email'], maxRowsOfPerson],
    [findToEraseSql.external_id, [name], maxRowsOfPerson],
    [findSubject.external_id, [name], maxRowsOfPerson],
    [findOtherHoldersSql, [name, person, 100], maxRowsOfPerson],
  ]),
]

/** The decisions about consents, and the history, numbers and sealing of answers. */
export function testConsents(world: World): void {
  // kith itself keeps the statistics of entities.
  const unanalyzed = ['changes', 'consent_history', 'aliases', 'merges', 'links']

  it.each([
    ['without statistics of the log', unanalyzed],
    ['with statistics', []],
  ])('decisions and histories read only the people and answers that were asked for, %s', async (_, unknownTables) => {
    for (const [sent, values, max] of statements)
      await expectReads(world.service.db, sent, [world.merged.id, ...values], max, { unknownTables })
  })

  it.each([
    ['without statistics of the log', unanalyzed],
    ['with statistics', []],
  ])(
    'the sealing reads the changes of its part, and the answers of those whose values were removed, %s',
    async (_, unknownTables) => {
      const start = base + people / 2
      for (const sent of [readAnswersSql, readUnsealedSql])
        await expectReads(world.service.db, sent, [world.merged.id, start, start + 100, 2_000], 100, { unknownTables })
    },
  )

  it.each([
    ['without statistics of the log', unanalyzed],
    ['with statistics', []],
  ])('the numbers of answers read each answer and each person at most twice, %s', async (_, unknownTables) => {
    const values = [world.merged.id, ['2026-01-01T00:00:00Z', 'infinity'], null, null]
    await expectReads(world.service.db, readConsentStatisticsSql, values, 2 * people, { unknownTables })
  })
}
