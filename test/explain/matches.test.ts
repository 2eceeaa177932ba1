import { beforeAll, expect, it } from 'vitest'
import type { Statement } from '../../src/db/db.ts'
import { readPageByKey } from '../../src/entities/read/read-sql.ts'
import { findMatchesSql, readIsFillingSql } from '../../src/entities/write/match-sql.ts'
import { listUnfilledSql, readWithoutKeysSql } from '../../src/identity/key-fill-sql.ts'
import { explain } from '../support/explain.ts'
import { type Organization, useService } from '../support/service.ts'

// One large organization, whose records have no keys, next to many small ones.
const people = 20_000
const records = 30_000
const smallOrganizations = 2_000
const maxRows = 30

const service = useService()
let shop: Organization
beforeAll(async () => {
  shop = await service.organization()
  const insert = (organization: string, stack_id: number, count: number, has_keys: boolean) =>
    service.sql(
      `insert into entities (organization_id, stack_id, id, external_id, active, version, attributes, created_at, updated_at, has_keys,
         email_key, mobile_key)
       select ${organization}, ${stack_id}, ('0190000${stack_id}-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'p' || i, true, 1,
         '{}', now(), now(), ${has_keys}, ${stack_id === 0 ? `'p' || i || '@example.org', '+39' || i` : 'null, null'}
       from generate_series(1, ${count}) i`,
    )
  await insert(`${shop.id}`, 0, people, true)
  await insert(`${shop.id}`, 7, records, false)
  await insert('1000 + i', 0, smallOrganizations, true)
}, 120_000)

const firstId = '00000000-0000-0000-0000-000000000000'
const rowsOf = ([read, values]: readonly [Statement, unknown[]]) =>
  service.db.transaction(tx => explain(tx, read, values))

const reads = (id: number) =>
  [
    [readIsFillingSql, [id]],
    [readPageByKey.email, [id, 'p7@example.org', firstId, 101, 10_000]],
    [readPageByKey.mobile, [id, '+397', firstId, 101, 10_000]],
    [readPageByKey.email, [id, 'nobody@example.org', firstId, 101, 10_000]],
    [findMatchesSql, [id, '[{"number":0,"external_id":"p7","email":"p8@example.org","mobile":"+399"}]', 11]],
    [findMatchesSql, [id, '[{"number":0,"email":"nobody@example.org"}]', 11]],
    [listUnfilledSql, []],
    [readWithoutKeysSql, [id, firstId, 500]],
  ] as const

it('reads only a few rows to look people up and to see that all have keys, whatever PostgreSQL knows of the table', async () => {
  for (const statistics of ['none', 'of the table', 'from before the keys', 'after a vacuum']) {
    if (statistics === 'of the table') await service.sql('analyze entities')
    if (statistics === 'from before the keys') {
      await service.sql('update entities set has_keys = false')
      await service.sql('analyze entities')
      await service.sql('update entities set has_keys = true where stack_id = 0')
    }
    if (statistics === 'after a vacuum') await service.sql('vacuum entities')
    for (const read of reads(shop.id))
      expect(await rowsOf(read as never), `${statistics}: ${read[0].name}`).toBeLessThan(maxRows)
  }
}, 120_000)
