import { expect, it } from 'vitest'
import { useOwnService } from '../../test/support/service.ts'
import type { Database } from '../db/db.ts'
import { forgetKeys } from './kept-responses.ts'

const service = useOwnService()

it('deletes the expired keys of those organizations that have any, and asks the others nothing', async () => {
  const organizations = await Promise.all([1, 2, 3].map(() => service.organization()))
  const [expired, fresh] = [organizations[0]!, organizations[1]!]
  const insert = (id: number, key: string, age: string) =>
    service.sql(
      `insert into idempotency_keys (organization_id, id, request_sha256, at)
       values ($1, sha256($2::bytea), sha256('request'), now() - $3::interval)`,
      [id, key, age],
    )
  await insert(expired.id, 'old', '25 hours')
  await insert(expired.id, 'new', '1 hour')
  await insert(fresh.id, 'new', '1 hour')
  const statements: string[] = []
  const db: Database = {
    ...service.db,
    query: (statement, values, signal) => {
      statements.push(statement.name)
      return service.db.query(statement, values, signal)
    },
  }
  expect(await forgetKeys(db)).toBe(1)
  expect(statements).toEqual(['list_organizations_with_expired_keys', 'forget_keys'])
  const ids = [expired.id, fresh.id].sort((one, other) => one - other)
  const left = 'select organization_id from idempotency_keys where organization_id = any($1) order by 1'
  expect(await service.sql(left, [ids])).toEqual(ids.map(organization_id => ({ organization_id })))
})
