import { it } from 'vitest'
import { readPageByKey } from '../../src/entities/read/read-sql.ts'
import { findMatchesSql, readIsFillingSql } from '../../src/entities/write/load-sql.ts'
import { listUnfilledSql, readWithoutKeysSql } from '../../src/identity/key-fill-sql.ts'
import { expectReads, type Knowledge } from './explain.ts'
import { related, type World } from './world.ts'

const maxRows = 30

const firstId = '00000000-0000-0000-0000-000000000000'

// Without statistics, PostgreSQL reads a stack to find the target of a link. kith itself keeps those of entities.
const person = related + 7

const statements = (id: number) =>
  [
    [readIsFillingSql, [id]],
    [readPageByKey.email, [id, `p${person}@example.org`, firstId, 101, 10_000]],
    [readPageByKey.mobile, [id, `+39${person}`, firstId, 101, 10_000]],
    [readPageByKey.email, [id, 'nobody@example.org', firstId, 101, 10_000]],
    [findMatchesSql, [id, '[{"number":0,"external_id":"p7","email":"p8@example.org","mobile":"+399"}]', 11]],
    [findMatchesSql, [id, '[{"number":0,"email":"nobody@example.org"}]', 11]],
    [listUnfilledSql, []],
    [readWithoutKeysSql, [id, firstId, 500]],
  ] as const

/** The statistics of a table whose last analyze found no keys at all. */
const noKeys = `update pg_statistic set stadistinct = 1, stavalues1 = array_in('{f}', 'bool'::regtype, -1), stanumbers1 = '{1}'
  where starelid = 'entities'::regclass and staattnum =
    (select attnum from pg_attribute where attrelid = 'entities'::regclass and attname = 'has_keys')`

/** Finds people by their keys, and those whose keys are missing. The records of the world have no keys. */
export function testMatches(world: World): void {
  it.each<[string, Knowledge]>([
    ['nothing of the table', { unknownTables: ['entities'] }],
    [
      'the table before it is vacuumed',
      { before: [`update pg_class set relallvisible = 0 where oid = 'entities'::regclass`] },
    ],
    ['the table', {}],
    ['the table from before the keys', { before: [noKeys] }],
  ])(
    'reads only a few rows to look people up and to see that all have keys, if PostgreSQL knows %s',
    async (_, knowledge) => {
      for (const [sent, values] of statements(world.shop.id))
        await expectReads(world.service.db, sent, values, maxRows, knowledge)
    },
  )
}
