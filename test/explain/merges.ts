import { it } from 'vitest'
import type { Statement } from '../../src/db/db.ts'
import { readTargetsSql } from '../../src/entities/bearers-sql.ts'
import {
  countLinksToSql,
  countListsOfSql,
  findMergeSql,
  findPeopleSql,
  leadLinksSql,
  listUnfinishedMergesSql,
  moveIdentifiersSql,
  numberMergeSql,
  readIsEmptiedSql,
  readMergedIdsSql,
  readMergesIntoSql,
  readMovingSql,
  readOwnAnswersSql,
  readWrittenKeysSql,
  returnIdentifiersSql,
} from '../../src/identity/merge-sql.ts'
import { readUnfinishedMergeSql } from '../../src/segments/sql.ts'
import { expectReads } from './explain.ts'
import { mergedId, personId, type World } from './world.ts'

const maxRows = 100

const [ada, bob] = [personId(7), personId(8)]

const statements = (id: number): (readonly [Statement, unknown[]])[] => {
  const names = JSON.stringify([
    { position: 0, external_id: 'p7' },
    { position: 1, external_id: 'a8' },
    { position: 2, id: mergedId(9) },
  ])
  return [
    [findPeopleSql, [id, names]],
    [countLinksToSql, [id, bob]],
    [countListsOfSql, [id, [mergedId(7)]]],
    [leadLinksSql, [id, [bob], bob, 50]],
    [leadLinksSql, [id, [mergedId(7)], ada, 50]],
    [readMovingSql, [id, 7]],
    [readUnfinishedMergeSql, [id]],
    [listUnfinishedMergesSql, []],
    [moveIdentifiersSql, [id, bob, ada]],
    [findMergeSql, [id, 'a8', ada, bob]],
    [readMergedIdsSql, [id, [7, 8]]],
    [readMergesIntoSql, [id, bob]],
    [readWrittenKeysSql, [id, bob, 1]],
    [numberMergeSql, [id, 7, [bob, ada], [1, 2]]],
    [readIsEmptiedSql, [id, bob, 1]],
    [readOwnAnswersSql, [id, bob]],
    [readTargetsSql, [id, JSON.stringify([{ position: 0, stack_id: 0, id: mergedId(7) }])]],
    [returnIdentifiersSql, [id, mergedId(7), ['a9'], [9], ['a7'], ada]],
  ]
}

/** Merges two people to whom a few entities link, in an organization with many links, aliases and merges, and undoes it. */
export function testMerges(world: World): void {
  it('reads only the rows of the two people and of their links to merge and unmerge them', async () => {
    for (const [sent, values] of statements(world.merged.id)) await expectReads(world.service.db, sent, values, maxRows)
  })
}
