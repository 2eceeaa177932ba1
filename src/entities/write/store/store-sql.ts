import { copyInto } from '../../../db/copy.ts'
import { statement } from '../../../db/db.ts'
import { hashed } from '../../../db/keyed-hash.ts'
import { profileFlags, profileTexts } from '../../../values/profile-fields.ts'
import { hashOfName } from '../load/load-sql.ts'

// The statements of store.ts. Each set is one JSON text parameter of a statement. That takes half the Node CPU of one
// array per column, at the same rows per second. `change_heads h` tells Citus the shard of an INSERT.

/** The columns of match-keys.ts. A write keeps those whose fields it does not change. */
const keyColumns = ['email_key', 'mobile_key', 'name_key']

/** Appends rows of entities. */
export const insertEntities = copyInto('insert_entities', 'entities', [
  ...['organization_id', 'stack_id', 'id', 'external_id', 'active', 'version', ...profileTexts, ...profileFlags],
  ...['answers', 'attributes', 'created_at', 'updated_at', ...keyColumns],
])

const textColumn = (name: string) =>
  `${name} = case when v.columns ? '${name}' then v.columns->>'${name}' else e.${name} end`
const booleanColumn = (name: string) =>
  `${name} = case when v.columns ? '${name}' then (v.columns->>'${name}')::boolean else e.${name} end`

/** Whether a change v deletes a row. The row of an erased entity may have been deleted before. */
const deletesRow = `v.operation in ('delete', 'merge', 'erase') and v.ctid is not null`

/**
 * $2: [{stack_id, id, ctid, operation, version, read_version, columns, attributes, removed_keys}], $3: the number of
 * the last change, $4: the time. Updates and deletes rows, and advances the head. `ctid` is the location of the row,
 * and `read_version` its version. Only an update has `columns`. `attributes` are merged into the stored ones. The lock
 * of the head keeps other writers away. Still, a trigger, an extension or the move of a shard may have moved a row
 * since it was read, or a statement may find the copy that a shard has left. In these cases the head gets no number,
 * which fails the transaction.
 */
export const storeChangesSql = statement(
  'store_changes',
  `with v as materialized (
     select * from jsonb_to_recordset($2::text::jsonb) as v(stack_id integer, id uuid, ctid tid, operation text, version integer,
       read_version integer, columns jsonb, attributes jsonb, removed_keys text[])
   ), updated as (
     update entities e set
       ${['external_id', ...profileTexts, ...keyColumns].map(textColumn).join(', ')},
       ${profileFlags.map(booleanColumn).join(', ')},
       active = e.active or v.columns ? 'active',
       answers = coalesce(v.columns->'answers', e.answers),
       attributes = case when v.attributes is null then e.attributes
         else (e.attributes - v.removed_keys) || v.attributes end,
       version = v.version,
       updated_at = case when v.operation = 'retention_due' then e.updated_at else $4 end
     from v
     where e.ctid = any(array(select v.ctid from v where v.columns is not null))
       and e.organization_id = $1 and e.stack_id = v.stack_id and e.id = v.id and v.columns is not null
       and e.version = v.read_version
     returning 1
   ), deleted as (
     delete from entities e using v
     where e.ctid = any(array(select v.ctid from v where ${deletesRow}))
       and e.organization_id = $1 and e.stack_id = v.stack_id and e.id = v.id and ${deletesRow}
       and e.version = v.read_version
     returning 1
   ), head as (
     update change_heads h set sequence = case
         when (select count(*) from updated) + (select count(*) from deleted)
           = (select count(*) from v where v.columns is not null or ${deletesRow}) then $3::bigint
       end,
       latest_at = greatest(h.latest_at, $4), max_setback = greatest(h.max_setback, h.latest_at - $4)
     where h.organization_id = $1
     returning 1
   ) select from head`,
)

/** Appends changes to the log. */
export const insertChanges = copyInto('insert_changes', 'changes', [
  ...['organization_id', 'sequence', 'at', 'subject', 'stack_id', 'entity_id', 'operation', 'version'],
  ...['before', 'after', 'actor', 'request_id', 'links'],
])

/** $2: [{source_id, attribute_id}]. Deletes the links of these attributes. Their sources are locked. */
export const deleteLinksSql = statement(
  'unlink',
  `delete from links l where l.organization_id = $1 and l.ctid = any(array(
     select k.ctid from jsonb_to_recordset($2::text::jsonb) as v(source_id uuid, attribute_id integer) cross join lateral (
       select k.ctid from links k
       where k.organization_id = $1 and k.source_id = v.source_id and k.attribute_id = v.attribute_id offset 0
     ) k
   ))`,
)

/**
 * `target_id` is the target of the link, or null if an earlier link of its list has the same one. `written_id` is the
 * target as it was written, if that is another one.
 */
export const insertLinks = copyInto('link', 'links', [
  ...['organization_id', 'source_id', 'attribute_id', 'target_stack_id', 'target_id', 'written_id', 'position'],
])

/** Appends answers to the consent history. */
export const appendConsentHistory = copyInto('append_consent_history', 'consent_history', [
  ...[
    'organization_id',
    'person_id',
    'version',
    'consent_type_id',
    'channel',
    'previous_state',
    'state',
    'source',
    'at',
  ],
  ...['actor', 'request_id', 'collected_at', 'evidence', 'superseded', 'pending', 'undated'],
])

/**
 * Stores the versions at which the names a(stack_id, external_id, version) of a FROM clause were released. All
 * transactions store the rows in one order, so that they do not deadlock.
 */
const rememberNames = (names: string): string =>
  `insert into name_versions (organization_id, hash, version)
   select k.organization_id, r.hash, max(r.version)
   from tombstone_keys k cross join lateral (select ${hashOfName} as hash, a.version from ${names}) r
   where k.organization_id = $1 group by k.organization_id, r.hash order by r.hash
   on conflict (organization_id, hash) do update set version = greatest(name_versions.version, excluded.version)`

/** $2: [{stack_id, external_id, version}]. Stores versions of released names that are not in the log. */
export const rememberNamesSql = statement(
  'remember_names',
  rememberNames('jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, version integer)'),
)

/**
 * Increments the version of the definitions if the organization has neither an alias nor a merge, so that every process
 * learns of the first one. Runs before it is inserted, in its transaction.
 */
export const countFirstAliasSql = statement(
  'count_first_alias',
  `update change_heads h set schema_version = h.schema_version + 1
   where h.organization_id = $1
     and not exists (select from aliases a where a.organization_id = $1)
     and not exists (select from merges m where m.organization_id = $1 and m.unmerged_sequence is null)`,
)

/** $2: [{external_id, person_id, merge_id}], $3: the time. */
export const insertAliasesSql = statement(
  'insert_aliases',
  `insert into aliases (organization_id, external_id, person_id, merge_id, created_at)
   select h.organization_id, v.external_id, v.person_id, v.merge_id, $3
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb) as v(external_id text, person_id uuid, merge_id integer)
   where h.organization_id = $1`,
)

/**
 * $2: [{stack_id, id, version}]. Stores the versions at which deleted people release their aliases, which
 * {@link deleteAliasesSql} then deletes.
 */
export const rememberAliasesSql = statement(
  'remember_aliases',
  rememberNames(`jsonb_to_recordset($2::text::jsonb) as v(stack_id integer, id uuid, version integer) cross join lateral (
       select v.stack_id, s.external_id, v.version from aliases s
       where s.organization_id = $1 and s.person_id = v.id offset 0
     ) a`),
)

/** $2: [{person_id, external_id}]. Deletes an alias of a person, or all of them if the external identifier is null. */
export const deleteAliasesSql = statement(
  'delete_aliases',
  `delete from aliases s where s.organization_id = $1 and s.ctid = any(array(
     select s.ctid from jsonb_to_recordset($2::text::jsonb) as v(person_id uuid, external_id text) cross join lateral (
       select s.ctid from aliases s
       where s.organization_id = $1 and s.person_id = v.person_id
         and (v.external_id is null or s.external_id = v.external_id) offset 0
     ) s
   ))`,
)

/** $2: values, $3: erasure. Returns a row for each. */
export const insertTombstonesSql = statement(
  'insert_tombstones',
  `insert into tombstones (organization_id, hash, erasure_id)
   select k.organization_id, h.hash, $3::integer from ${hashed} order by h.hash
   on conflict (organization_id, hash) do update set erasure_id = excluded.erasure_id returning erasure_id`,
)

/** $2: values that a person has again. */
export const deleteTombstonesSql = statement(
  'delete_tombstones',
  `delete from tombstones t where t.organization_id = $1 and t.hash in (
     select h.hash from ${hashed}
   )`,
)
