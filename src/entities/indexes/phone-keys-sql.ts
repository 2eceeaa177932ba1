import { statement } from '../../db/db.ts'

/** Needs the head's lock. Returns no row if all keys are those of the setting. */
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

/** $2: people. The phones without a prefix of people who were merged into them. */
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

/** $2: people. The segments test them with the next change of the log, which does not tell of them. */
export const insertPhoneChecksSql = statement(
  'insert_phone_checks',
  `insert into segment_checks (organization_id, entity_id)
   select h.organization_id, v.id from change_heads h cross join unnest($2::uuid[]) as v(id)
   where h.organization_id = $1 on conflict do nothing`,
)

/** $2: the last scanned person; null after all. */
export const advancePhoneKeysSql = statement(
  'advance_phone_keys',
  'update organization_settings set phone_keys_after = $2 where organization_id = $1',
)
