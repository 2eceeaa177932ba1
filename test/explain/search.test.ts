import { beforeAll, expect, it } from 'vitest'
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
  walkPrefixSql,
} from '../../src/search/sql.ts'
import { explain } from '../support/explain.ts'
import { type Organization, useOwnService } from '../support/service.ts'

// One large organization next to another one with the same words.
const people = 20_000
const maxRows = 400

const service = useOwnService()
let shop: Organization
beforeAll(async () => {
  shop = await service.organization()
  const { id: other } = await service.organization()
  for (const id of [shop.id, other]) {
    const entity = `('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid`
    await service.sql(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, created_at, updated_at)
       select ${id}, 0, ${entity}, 'p' || i, true, 1, now(), now() from generate_series(1, ${people}) i`,
    )
    const words = `array['common', 'all', 'rare' || chr(97 + i % 26) || i % 997, 'p' || i]`
    await service.sql(
      `insert into search_documents select ${id}, 0, ${entity}, ' ' || array_to_string(${words}, ' ') || ' ' from generate_series(1, ${people}) i`,
    )
    await service.sql(
      `insert into search_words select ${id}, 0, w.word, ${entity} from generate_series(1, ${people}) i cross join lateral unnest(${words}) w(word)`,
    )
    await service.sql(
      `insert into search_features select ${id}, 0, f.feature, 'word' || i from generate_series(1, 5000) i
         cross join lateral unnest(array['-word' || i, 'wo' || chr(97 + i % 26)]) f(feature)`,
    )
  }
}, 120_000)

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
      [...from, 0, ['p7', 'p8'], [1, 1], [10, 10], 'zz', 10, ['common'], ...noSimilar, ['% zz%'], [' (common)']],
    ],
    [listChangedEntitiesSql, [id, 0, 1_000, ['last_name'], []]],
    [readSearchSourcesSql, [id, 0, ['01900000-0000-7000-8000-000000000007'], ['city']]],
  ] as const
}

const inOrder: Statement[] = [findExactOfBothSql, walkPrefixSql]

it('reads only a few rows of its organization, whatever PostgreSQL knows of the tables', async () => {
  for (const statistics of ['none', 'of the tables', 'after a vacuum']) {
    if (statistics === 'of the tables') await service.sql('analyze')
    if (statistics === 'after a vacuum') await service.sql('vacuum')
    for (const [read, values] of reads(shop.id)) {
      // The fill analyzes the entities first.
      if (read === readSearchSourcesSql && statistics === 'none') continue
      const rows = await service.db.transaction(async tx => {
        if (inOrder.includes(read)) await tx.query(preferOrderSql, [])
        return explain(tx, read, values as unknown as unknown[])
      })
      expect(rows, `${statistics}: ${read.name}`).toBeLessThan(maxRows)
    }
  }
}, 120_000)
