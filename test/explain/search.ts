import { it } from 'vitest'
import type { Statement } from '../../src/db/db.ts'
import { listChangedEntitiesSql, readSearchSourcesSql } from '../../src/entities/indexes/search-index-sql.ts'
import {
  countEntitiesSql,
  countWordsSql,
  findByIdentifierSql,
  findExactOfBothSql,
  findExactSql,
  findPrefixOfBothSql,
  findPrefixSql,
  findSimilarSql,
  findSimilarWordsSql,
  preferOrderSql,
  readSearchStateSql,
  walkPrefixSql,
} from '../../src/search/sql.ts'
import { expectReads, type Knowledge } from './explain.ts'
import { base, personId, type World } from './world.ts'

const maxRows = 400

const firstId = '00000000-0000-0000-0000-000000000000'

const reads = (id: number) => {
  const from = [id, 0, firstId, [], 21]
  const noSimilar = [[], [], []]
  return [
    [findByIdentifierSql, [id, 0, 'p7', 'p7@example.org', '+397', 100]],
    [countWordsSql, [id, 0, ['common', 'rareb1', 'p7'], 100]],
    [countEntitiesSql, [id, 0, ['common', 'rareb1'], 100]],
    [findExactSql, [...from, 'common', ['% common %']]],
    [findExactSql, [...from, 'p777', ['% p777 %', '% common %']]],
    [findExactOfBothSql, [...from, 'common', ['% common %', '% all %'], 'all']],
    [findPrefixSql, [...from, 'p1999', ['% p1999%'], ['% p1999 %'], ['-']]],
    [findPrefixOfBothSql, [...from, 'p1999', ['% p1999%', '% p199%'], ['% p1999 %'], ['% 1999 %'], 'p199']],
    [walkPrefixSql, [...from, 'com', ['% com%'], ['% com %'], ['-']]],
    [findSimilarWordsSql, [id, 0, ['wob'], 1, ['-word7'], 100]],
    [
      findSimilarSql,
      [
        ...[...from, 0, ['p7', 'p8'], [1, 1], [10, 10], [1, 1], ['zz'], 10, 20],
        ...[['common'], ...noSimilar, ['% zz%'], [' (common)']],
      ],
    ],
    // The lists of two words are compared before any document is read.
    [
      findSimilarSql,
      [
        ...[...from, 0, ['common', 'all'], [1, 1], [100, 100], [1, 2], ['zz', 'yy'], 10, 5],
        ...[['yy'], ['all'], [1], [1], ['% zz%'], [' (yy|all )']],
      ],
    ],
    [readSearchStateSql, [id, [0, 1]]],
    [listChangedEntitiesSql, [id, base, base + 300, ['last_name'], []]],
    [readSearchSourcesSql, [id, 0, [personId(7)], ['city'], true]],
  ] as const
}

const inOrder: Statement[] = [findExactOfBothSql, walkPrefixSql]

const tables = ['entities', 'search_documents', 'search_words', 'search_features', 'changes']

/** Searches people by words, in an organization next to another one with the same words. */
export function testSearch(world: World): void {
  it.each<[string, Knowledge]>([
    ['nothing of the tables', { unknownTables: tables }],
    ['the tables before they are vacuumed', { before: ['update pg_class set relallvisible = 0'] }],
    ['the tables', {}],
  ])('reads only a few rows of its organization, if PostgreSQL knows %s', async (_, knowledge) => {
    for (const [sent, values] of reads(world.shop.id)) {
      // The fill analyzes the entities first.
      if (sent === readSearchSourcesSql && knowledge.unknownTables) continue
      const before = [...(knowledge.before ?? []), ...(inOrder.includes(sent) ? [preferOrderSql.text] : [])]
      await expectReads(world.service.db, sent, values, maxRows, { ...knowledge, before })
    }
  })
}
