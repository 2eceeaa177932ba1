import { statement } from '../db/db.ts'

/**
 * $2: id, $3: kind, $4: hashes, $5: entries. If the response of the database was lost, kith sends a stored batch again,
 * and this ignores it. An organization without a head is deleted.
 */
export const insertBatchSql = statement(
  'insert_access_batch',
  `insert into access_batches (organization_id, id, kind, hashes, entries)
   select h.organization_id, $2, $3, $4, $5 from change_heads h where h.organization_id = $1
   on conflict (organization_id, id) do nothing`,
)

const readBatches = (condition: string) =>
  `select b.id::float8 as id, b.kind, b.entries from access_batches b
   where b.organization_id = $1 and b.id >= $2 and b.id <= $3${condition} order by b.id desc limit $4`

/** $2: the lowest id, $3: the highest id, $4: limit. Reads batches, newest first. */
export const readBatchesSql = statement('read_access_batches', readBatches(''))
export const readSecurityBatchesSql = statement('read_security_batches', readBatches(` and b.kind = 'security'`))

/** $2: the lowest id, $3: ids. Reads batches, newest first. */
export const readNamedBatchesSql = statement(
  'read_named_access_batches',
  `select b.id::float8 as id, b.kind, b.entries from access_batches b
   where b.organization_id = $1 and b.id = any($2::bigint[]) order by b.id desc`,
)

/** $2: buckets. The rows of the index. */
export const readIndexSql = statement(
  'read_access_index',
  `select i.last_id::float8 as last_id, i.pairs from access_index i
   where i.organization_id = $1 and i.bucket = any($2::smallint[])`,
)

/**
 * $2: after this id, $3: hashes as bytes. Returns the batches that are not indexed yet and contain the bytes of a hash.
 */
export const findUnindexedSql = statement(
  'find_unindexed_batches',
  `select b.id::float8 as id from access_batches b
   where b.organization_id = $1 and b.id > $2 and exists (
     select from unnest($3::bytea[]) as h(bytes) where position(h.bytes in b.hashes) > 0
   )`,
)

/**
 * $1: organizations, $2: a batch id, $3: limit, $4: a time. Returns for each organization its last indexed batch, how
 * many batches are not indexed (at most $3), and whether it has a batch before $2 and an erasure since $4.
 */
export const findAccessWorkSql = statement(
  'find_access_work',
  `select v.organization_id, coalesce(i.last_id, 0)::float8 as last_id, u.count, (o.id is not null) as is_old, coalesce(e.at >= $4, false) as has_erased
   from unnest($1::integer[]) as v(organization_id)
     left join lateral (
       select i.last_id from access_index i where i.organization_id = v.organization_id and i.bucket = 0
       order by i.last_id desc limit 1
     ) i on true
     cross join lateral (
       select count(*)::integer as count from (
         select 1 from access_batches b where b.organization_id = v.organization_id and b.id > coalesce(i.last_id, 0) limit $3
       ) x
     ) u
     left join lateral (
       select b.id from access_batches b where b.organization_id = v.organization_id and b.id < $2 limit 1
     ) o on true
     left join lateral (
       select e.at from erasures e where e.organization_id = v.organization_id order by e.id desc limit 1
     ) e on true`,
)

/** $2: after this id, $3: up to this id, $4: limit. */
export const readHashesSql = statement(
  'read_access_hashes',
  `select b.id::float8 as id, b.hashes from access_batches b
   where b.organization_id = $1 and b.id > $2 and b.id <= $3 order by b.id limit $4`,
)

/** $2: the last batch, $3: the pairs of each bucket. */
export const insertIndexSql = statement(
  'insert_access_index',
  `insert into access_index (organization_id, bucket, last_id, pairs)
   select h.organization_id, v.bucket - 1, $2, v.pairs
   from change_heads h cross join unnest($3::bytea[]) with ordinality as v(pairs, bucket)
   where h.organization_id = $1
   on conflict (organization_id, bucket, last_id) do nothing`,
)

/** $2: before this id, $3: limit. Deletes batches, and returns their number. */
export const deleteBatchesSql = statement(
  'delete_access_batches',
  `with gone as (
     delete from access_batches b where b.organization_id = $1 and b.id = any(array(
       select o.id from access_batches o where o.organization_id = $1 and o.id < $2 order by o.id limit $3
     )) returning 1
   ) select count(*)::integer as count from gone`,
)

/** $2: before this id. */
export const deleteIndexSql = statement(
  'delete_access_index',
  'delete from access_index i where i.organization_id = $1 and i.last_id < $2',
)

/** $2: id, $3: hashes, $4: entries. */
export const updateBatchSql = statement(
  'update_access_batch',
  'update access_batches b set hashes = $3, entries = $4 where b.organization_id = $1 and b.id = $2',
)

/** $2: since this time, $3: limit. Returns the last erased entities. */
export const readErasedSql = statement(
  'read_erased_since',
  `select e.entity_id as id from (
     select x.entity_id, x.at from erasures x where x.organization_id = $1 order by x.id desc limit $3
   ) e where e.at >= $2`,
)
