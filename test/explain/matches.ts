import { it } from 'vitest'
import { readPageByKey } from '../../src/entities/read/read-sql.ts'
import { findMatchesSql } from '../../src/entities/write/load/load-sql.ts'
import { expectReads, type Knowledge } from './explain.ts'
import { related, type World } from './world.ts'

const maxRows = 30

const firstId = '00000000-0000-0000-0000-000000000000'

// Without statistics, PostgreSQL reads a stack to find the target of a link. kith itself keeps those of entities.
const person = related + 7

const statements = (id: number) =>
  [
    [readPageByKey.email, [id, `p${person}@example.org`, firstId, 101, 10_000]],
    [readPageByKey.mobile, [id, `+39${person}`, firstId, 101, 10_000]],
    [readPageByKey.email, [id, 'nobody@example.org', firstId, 101, 10_000]],
    [findMatchesSql, [id, '[{"number":0,"external_id":"p7","email":"p8@example.org","mobile":"+399"}]', 11]],
    [findMatchesSql, [id, '[{"number":0,"email":"nobody@example.org"}]', 11]],
  ] as const

/** Finds people by their keys. The records of the world have no keys. */
export function testMatches(world: World): void {
  it.each<[string, Knowledge]>([
    ['nothing of the table', { unknownTables: ['entities'] }],
    [
      'the table before it is vacuumed',
      { before: [`update pg_class set relallvisible = 0 where oid = 'entities'::regclass`] },
    ],
    ['the table', {}],
  ])('reads only a few rows to look people up, if PostgreSQL knows %s', async (_, knowledge) => {
    for (const [sent, values] of statements(world.shop.id))
      await expectReads(world.service.db, sent, values, maxRows, knowledge)
  })
}
