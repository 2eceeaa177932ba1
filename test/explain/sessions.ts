import { it } from 'vitest'
import type { Statement } from '../../src/db/db.ts'
import {
  deleteExpiredCodesSql,
  deleteExpiredSessionsSql,
  listSessionsSql,
  readSessionSql,
  revokeSessionSql,
  useSignInCodeSql,
} from '../../src/sessions/sql.ts'
import { expectReads } from './explain.ts'
import type { World } from './world.ts'

const maxRows = 40

/** Sessions and codes of the console, in tables in which few rows belong to the organization. */
export function testSessions(world: World): void {
  it('sessions and codes are found and deleted by their indexes', async () => {
    const { service, shop } = world
    const [first] = await service.sql<{ id: string; digest: string }>(
      `select id, '\\x' || encode(token_sha256, 'hex') as digest from sessions where organization_id = $1 limit 1`,
      [shop.id],
    )
    const statements: [Statement, unknown[]][] = [
      [readSessionSql, [shop.id, first!.digest]],
      [listSessionsSql, [shop.id, 1_000]],
      [revokeSessionSql, [shop.id, first!.id]],
      [useSignInCodeSql, [shop.id, first!.digest]],
      [deleteExpiredSessionsSql, []],
      [deleteExpiredCodesSql, []],
    ]
    for (const [sent, values] of statements) await expectReads(service.db, sent, values, maxRows)
  })
}
