import { statement } from '../../db/db.ts'

/** The keyed hash of a text. The key never leaves the database: without it, nobody can find out which values were erased. */
export const hashOf = (text: string): string => `sha256(k.secret || sha256(k.secret || convert_to(${text}, 'UTF8')))`

/** The values v.value of $2 with their hashes. */
const hashed = `unnest($2::text[]) as v(value) join tombstone_keys k on k.organization_id = $1 cross join lateral (
     select ${hashOf('v.value')} as hash offset 0
   ) h`

/** $2: values such as `email:ada@example.com`. Returns those that an erasure keeps. */
export const readTombstonesSql = statement(
  'read_tombstones',
  `select v.value, t.erasure_id from ${hashed} cross join lateral (
     select t.erasure_id from tombstones t where t.organization_id = $1 and t.hash = h.hash offset 0
   ) t`,
)

/** $2: values, $3: erasure. Returns a row for each. */
export const insertTombstonesSql = statement(
  'insert_tombstones',
  `insert into tombstones (organization_id, hash, erasure_id)
   select k.organization_id, h.hash, $3::integer from ${hashed} order by h.hash
   on conflict (organization_id, hash) do update set erasure_id = excluded.erasure_id returning erasure_id`,
)

/** $2: values. A person has them again. */
export const deleteTombstonesSql = statement(
  'delete_tombstones',
  `delete from tombstones t where t.organization_id = $1 and t.hash in (
     select h.hash from ${hashed}
   )`,
)
