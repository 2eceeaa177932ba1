import { copyInto } from '../../db/copy.ts'
import { statement } from '../../db/db.ts'

/** $2: [{index_id, value, entity_id}]. */
export const deleteKeysSql = statement(
  'delete_index_keys',
  `delete from terms t where t.organization_id = $1 and t.ctid = any(array(
     select k.ctid from jsonb_to_recordset($2::text::jsonb) as v(index_id integer, value text, entity_id uuid)
     cross join lateral (
       select k.ctid from terms k where k.organization_id = $1 and k.index_id = v.index_id and k.value = v.value
         and k.entity_id = v.entity_id offset 0
     ) k
   ))`,
)

/** $2: [{index_id, value, entity_id}]. Skips the keys that exist. */
export const insertKeysSql = statement(
  'insert_index_keys',
  `insert into terms (organization_id, index_id, value, entity_id)
   select h.organization_id, v.index_id, v.value, v.entity_id
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb) as v(index_id integer, value text, entity_id uuid)
   where h.organization_id = $1
   on conflict do nothing`,
)

/** Appends the keys of new entities. A COPY takes half the time of an INSERT that looks up each key. */
export const appendKeys = copyInto('append_index_keys', 'terms', ['organization_id', 'index_id', 'value', 'entity_id'])

/** Returns the indexes whose backfill is not complete. */
export const readUnfilledSql = statement(
  'read_unfilled',
  `select d.index_id, d.owner_stack_id as stack_id, d.key, d.type, d.cardinality from attributes d
   where d.organization_id = $1 and d.index_id is not null and not d.index_ready order by d.index_id`,
)

/**
 * Runs before a scan, because the planner needs statistics. Without them it chose the index of the external identifiers
 * for a look-up by id, and a backfill of 100,000 entities took 100 s instead of 5 s.
 */
export const analyzeEntitiesSql = statement('analyze_entities', 'analyze entities')
export const analyzeTermsSql = statement('analyze_terms', 'analyze terms')

/** $2: index, $3: stack. Records the start of a backfill and counts its entities, once. */
export const beginFillSql = statement(
  'begin_fill',
  `insert into fills (organization_id, index_id, after_id, indexed, total)
   select h.organization_id, $2, '00000000-0000-0000-0000-000000000000', 0, (
     select count(*) from entities e where e.organization_id = $1 and e.stack_id = $3
   ) from change_heads h
   where h.organization_id = $1 and not exists (select from fills f where f.organization_id = $1 and f.index_id = $2)
   on conflict do nothing`,
)

/** $2: index. Needs the head's lock. Returns no row if the index was dropped or is ready. */
export const readFillSql = statement(
  'read_fill',
  `select f.after_id from fills f where f.organization_id = $1 and f.index_id = $2
     and (exists (select from attributes d where d.organization_id = $1 and d.index_id = $2 and not d.index_ready)
       or exists (select from sort_indexes s where s.organization_id = $1 and s.index_id = $2 and not s.ready))`,
)

/** $2: stack, $3: after this id, $4: limit. */
export const scanIdsSql = statement(
  'scan_ids',
  `select e.id from entities e
   where e.organization_id = $1 and e.stack_id = $2 and e.id > $3 order by e.id limit $4`,
)

/** $2: stack, $3: ids, $4: key. Returns the values of the entities that have one under the key. */
export const readValuesSql = statement(
  'read_values',
  `select v.id, v.value from unnest($3::uuid[]) a(id) cross join lateral (
     select e.id, e.attributes->$4 as value from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id = a.id and e.attributes ? $4 offset 0
   ) v`,
)

/** $2: index, $3: last scanned id, $4: number of scanned entities. */
export const advanceFillSql = statement(
  'advance_fill',
  `update fills set after_id = $3, indexed = indexed + $4, total = greatest(total, indexed + $4)
   where organization_id = $1 and index_id = $2`,
)

/**
 * $2: index, $3: the next schema version. Needs the head's lock. Stores this version, so every process learns that the
 * index is ready.
 */
export const finishFillSql = statement(
  'finish_fill',
  `with ready as (
     update attributes set index_ready = true, version = $3
     where organization_id = $1 and index_id = $2 and not index_ready returning 1
   ), sorting as (
     update sort_indexes set ready = true where organization_id = $1 and index_id = $2 and not ready returning 1
   ), head as (
     update change_heads set schema_version = $3
     where organization_id = $1 and (exists (select from ready) or exists (select from sorting)) returning 1
   ) select from head`,
)

/** Returns dropped indexes that still have terms. A loose index scan jumps from one index to the next. */
export const readDroppedSql = statement(
  'read_dropped',
  `with recursive held as (
     (select t.index_id from terms t where t.organization_id = $1 order by t.index_id limit 1)
     union all
     select (select t.index_id from terms t where t.organization_id = $1 and t.index_id > h.index_id
       order by t.index_id limit 1)
     from held h where h.index_id is not null
   )
   select h.index_id from held h where h.index_id is not null
     and not exists (select from attributes d where d.organization_id = $1 and d.index_id = h.index_id)
     and not exists (select from sort_indexes s where s.organization_id = $1 and s.index_id = h.index_id)`,
)

/** $2: index, $3: limit. */
export const deleteTermsSql = statement(
  'delete_terms',
  `with gone as (
     delete from terms t using (
       select value, entity_id from terms where organization_id = $1 and index_id = $2 limit $3
     ) d
     where t.organization_id = $1 and t.index_id = $2 and t.value = d.value and t.entity_id = d.entity_id
     returning 1
   ) select count(*)::integer as count from gone`,
)

export const deleteFillsSql = statement(
  'delete_fills',
  `delete from fills f where f.organization_id = $1
     and not exists (select from attributes d where d.organization_id = $1 and d.index_id = f.index_id)
     and not exists (select from sort_indexes s where s.organization_id = $1 and s.index_id = f.index_id)`,
)

/** Needs the head's lock. Returns no row if all keys match `default_country`. */
export const readPhoneKeysSql = statement(
  'read_phone_keys',
  `select s.phone_keys_after as after_id from organization_settings s
   where s.organization_id = $1 and s.phone_keys_after is not null`,
)

/** $2: after this person, $3: limit. */
export const scanPhonesSql = statement(
  'scan_phones',
  `select e.id, e.mobile_prefix, e.mobile_number, e.mobile_key from entities e
   where e.organization_id = $1 and e.stack_id = 0 and e.id > $2 order by e.id limit $3`,
)

/** $2: people. Returns the phones without a prefix of the people who were merged into them. */
export const scanMergedPhonesSql = statement(
  'scan_merged_phones',
  `select m.id, m.person_id, null::text as mobile_prefix, m.undo->'other'->'columns'->>'mobile_number' as mobile_number, m.mobile_key
   from merges m
   where m.organization_id = $1 and m.person_id = any($2::uuid[]) and m.unmerged_sequence is null
     and m.undo->'other'->'columns'->>'mobile_number' is not null
     and coalesce(m.undo->'other'->'columns'->>'mobile_prefix', '') = ''`,
)

/** $2: [{id, mobile_key}]. */
export const storePhoneKeysSql = statement(
  'store_phone_keys',
  `update entities e set mobile_key = v.mobile_key from jsonb_to_recordset($2::text::jsonb) as v(id uuid, mobile_key text)
   where e.organization_id = $1 and e.stack_id = 0 and e.id = v.id`,
)

/** $2: [{id, mobile_key}], with the ids of merges. */
export const storeMergedPhoneKeysSql = statement(
  'store_merged_phone_keys',
  `update merges m set mobile_key = v.mobile_key from jsonb_to_recordset($2::text::jsonb) as v(id integer, mobile_key text)
   where m.organization_id = $1 and m.id = v.id`,
)

/**
 * $2: people. The segments check these people together with the next change of the log, because the log does not list
 * them.
 */
export const insertPhoneChecksSql = statement(
  'insert_phone_checks',
  `insert into segment_checks (organization_id, entity_id)
   select h.organization_id, v.id from change_heads h cross join unnest($2::uuid[]) as v(id)
   where h.organization_id = $1 on conflict do nothing`,
)

/** $2: the last scanned person, or null when the scan is complete. */
export const advancePhoneKeysSql = statement(
  'advance_phone_keys',
  'update organization_settings set phone_keys_after = $2 where organization_id = $1',
)
