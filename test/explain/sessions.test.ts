import { beforeAll, expect, it } from 'vitest'
import type { Statement } from '../../src/db/db.ts'
import {
  deleteExpiredCodesSql,
  deleteExpiredSessionsSql,
  listSessionsSql,
  readSessionSql,
  revokeSessionSql,
  useSignInCodeSql,
} from '../../src/sessions/sql.ts'
import { explain } from '../support/explain.ts'
import { type Organization, useOwnService } from '../support/service.ts'

const sessions = 20_000
const maxRows = 40

const service = useOwnService()
let shop: Organization
beforeAll(async () => {
  shop = await service.organization()
  // A large table in which few sessions belong to the organization, and ten have expired.
  await service.sql(
    `insert into sessions (organization_id, id, token_sha256, name, scope, method, expires_at)
     select case when i <= 20 then $1::integer else 100000 + i % 3 end, gen_random_uuid(), sha256(i::text::bytea), 'x', 'people:read', 'code',
       now() + case when i % $2 = 0 then interval '-1 minute' else interval '1 hour' end
     from generate_series(1, $3::integer) i`,
    [shop.id, sessions / 10, sessions],
  )
  await service.sql(
    `insert into sign_in_codes (organization_id, code_sha256, name, scope, expires_at)
     select case when i <= 20 then $1::integer else 100000 end, sha256(i::text::bytea), 'x', 'people:read',
       now() + case when i % $2 = 0 then interval '-1 minute' else interval '1 minute' end
     from generate_series(1, $3::integer) i`,
    [shop.id, sessions / 10, sessions],
  )
  await service.sql('analyze sessions, sign_in_codes')
}, 120_000)

it('sessions and codes are found and deleted by their indexes', async () => {
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
  for (const [found, values] of statements)
    expect(await service.db.transaction(tx => explain(tx, found, values)), found.name).toBeLessThan(maxRows)
}, 120_000)
