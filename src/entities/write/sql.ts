import { statement } from '../../db/db.ts'
import { profileFlags, profileTexts } from '../../profile-fields.ts'
import { hashOf } from './tombstone-sql.ts'

// Each set is sent as one JSON text parameter. That takes half the Node CPU of one array per column, at the same rows
// per second.

const profileColumns = [...profileTexts, ...profileFlags]
/** The columns of match-keys.ts. A write keeps those whose fields it does not change. */
const keyColumns = ['email_key', 'mobile_key', 'name_key']
/** The columns that a set reads of the rows e. */
export const readColumns = [
  'stack_id',
  'id',
  'external_id',
  'active',
  'version',
  ...profileColumns,
  'answers',
  'attributes',
]
  .map(column => `e.${column}`)
  .join(', ')

// The planner expects 100 rows of a set and an average number of rows of an organization. It would scan a large
// organization for a single write (90 ms with 100,000 people, among 10,000 small organizations). `cross join lateral (…
// offset 0)` forces an index look-up for each element.

/** $2: [{stack_id, external_id | id}]. Returns each row once, with its `ctid`. */
export const readRowsSql = statement(
  'read_rows',
  `with addressed as materialized (
     select a.stack_id, a.external_id, a.id
     from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, id uuid)
   ), wanted as materialized (
     select a.stack_id, e.id from addressed a cross join lateral (
       select e.id from entities e
       where e.organization_id = $1 and e.stack_id = a.stack_id and e.external_id = a.external_id offset 0
     ) e
     union
     select a.stack_id, a.id from addressed a where a.id is not null
   )
   select e.* from wanted w cross join lateral (
     select e.ctid, ${readColumns} from entities e
     where e.organization_id = $1 and e.stack_id = w.stack_id and e.id = w.id offset 0
   ) e`,
)

/**
 * As {@link readRowsSql}, for sets of one stack addressed by external id only, as almost all are. $2: stack, $3: external ids, one per
 * line and each once.
 */
export const readNamedSql = statement(
  'read_named',
  `select e.* from string_to_table($3, E'\\n') as a(name) cross join lateral (
     select e.ctid, ${readColumns} from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.external_id = a.name offset 0
   ) e`,
)

/**
 * $2: [{stack_id, external_id | id}]. Returns the entities with these names or internal identifiers (`asked_id`), without locks.
 * `current_name` is the external identifier.
 */
export const readBearersSql = statement(
  'read_bearers',
  `select a.stack_id, a.external_id, a.id as asked_id, e.id, e.current_name
   from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, id uuid) cross join lateral (
     (select e.id, e.external_id as current_name from entities e
     where e.organization_id = $1 and e.stack_id = a.stack_id and e.external_id = a.external_id offset 0)
     union all
     (select e.id, e.external_id from entities e
     where e.organization_id = $1 and e.stack_id = a.stack_id and e.id = a.id offset 0)
   ) e`,
)

// The change log remembers the names that deletions and renames released, and `name_versions` those that the log does not tell.

/** Whether an entity of the organization ever released a name. */
const hasReleases = `(
       exists (select from changes h where h.organization_id = $1 and h.before->>'external_id' is not null)
       or exists (select from name_versions h where h.organization_id = $1)
     )`

/** The hash of the name a.external_id of the stack a.stack_id. */
const hashOfName = hashOf(`a.stack_id || ':' || a.external_id`)

/** The highest version at which an entity released the name a.external_id of the stack a.stack_id; null if none did. */
const lastRelease = `greatest((
       select c.version from changes c
       where c.organization_id = $1 and c.stack_id = a.stack_id
         and (c.before->>'external_id') collate "C" = a.external_id
         and c.before->>'external_id' is not null
       order by c.version desc limit 1
     ), (
       select n.version from tombstone_keys k join name_versions n on n.organization_id = $1 and n.hash = ${hashOfName}
       where k.organization_id = $1 and exists (select from name_versions h where h.organization_id = $1)
     ))`

/**
 * $2: [{stack_id, external_id}]. Returns the highest version at which an entity released each name. If the organization never
 * released a name, 1,000 names cost two index look-ups.
 */
export const readNamesLeftSql = statement(
  'read_names_left',
  `select a.stack_id, a.external_id, l.version
   from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text) cross join lateral (
     select ${lastRelease} as version offset 0
   ) l
   where l.version is not null and ${hasReleases}`,
)

/**
 * Remembers the versions at which the names a(stack_id, external_id, version) of a FROM clause were released. The rows are stored in one
 * order, so two transactions cannot wait for each other.
 */
export const rememberNames = (names: string): string =>
  `insert into name_versions (organization_id, hash, version)
   select k.organization_id, r.hash, max(r.version)
   from tombstone_keys k cross join lateral (select ${hashOfName} as hash, a.version from ${names}) r
   where k.organization_id = $1 group by k.organization_id, r.hash order by r.hash
   on conflict (organization_id, hash) do update set version = greatest(name_versions.version, excluded.version)`

/** $2: [{stack_id, external_id, version}]. Remembers versions at which names were released, where the log does not tell. */
export const rememberNamesSql = statement(
  'remember_names',
  rememberNames('jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, version integer)'),
)

/** $2: [{source_id, attribute_ids}]. */
export const readLinksSql = statement(
  'read_links',
  `select s.source_id, l.attribute_id, t.id, t.external_id
   from jsonb_to_recordset($2::text::jsonb) as s(source_id uuid, attribute_ids integer[]) cross join lateral (
     select l.attribute_id, l.target_stack_id, l.target_id, l.position from links l
     where l.organization_id = $1 and l.source_id = s.source_id and l.attribute_id = any(s.attribute_ids) offset 0
   ) l cross join lateral (
     select t.id, t.external_id from entities t
     where t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id offset 0
   ) t
   order by s.source_id, l.attribute_id, l.position`,
)

const insertedTypes = {
  ...{ stack_id: 'integer', id: 'uuid', external_id: 'text', active: 'boolean', version: 'integer' },
  ...Object.fromEntries(profileTexts.map(column => [column, 'text'])),
  ...Object.fromEntries(profileFlags.map(column => [column, 'boolean'])),
  ...{ answers: 'jsonb', attributes: 'jsonb', created_at: 'timestamptz' },
  ...Object.fromEntries(keyColumns.map(column => [column, 'text'])),
}
const insertedColumns = Object.keys(insertedTypes)

/** $2: rows as objects of their columns, $3: the time. Inserts rows. */
export const insertEntitiesSql = statement(
  'insert_entities',
  `insert into entities (organization_id, ${insertedColumns.join(', ')}, updated_at, has_keys)
   select h.organization_id, ${insertedColumns.map(column => `v.${column}`).join(', ')}, $3, true
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb)
     as v(${Object.entries(insertedTypes)
       .map(([column, type]) => `${column} ${type}`)
       .join(', ')})
   where h.organization_id = $1`,
)

const textColumn = (name: string) =>
  `${name} = case when v.columns ? '${name}' then v.columns->>'${name}' else e.${name} end`
const booleanColumn = (name: string) =>
  `${name} = case when v.columns ? '${name}' then (v.columns->>'${name}')::boolean else e.${name} end`

/** Whether a change v deletes a row. The row of an erased entity may have been deleted before. */
const deletesRow = `v.operation in ('delete', 'merge', 'erase') and v.ctid is not null`

/**
 * $2: [{stack_id, id, ctid, operation, version, read_version, columns, attributes, removed_keys}], $3: the number of the last change,
 * $4: the time. Updates and deletes rows, and advances the head. `ctid` is the location of the row, and `read_version` its version. Only an
 * update has `columns`. `attributes` are merged into the stored ones. The lock of the head keeps other writers away, but a trigger, an
 * extension or the move of a shard may have moved a row since it was read, and a statement may find the copy that a shard has left. The
 * head gets no number then, which fails the transaction.
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
       updated_at = $4
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
       end
     where h.organization_id = $1
     returning 1
   ) select from head`,
)

/** $2: changes in order, $3: the time. Appends the log. */
export const insertChangesSql = statement(
  'insert_changes',
  `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after,
     actor, request_id, link_targets)
   select h.organization_id, v.sequence, $3, 'entity', v.stack_id, v.id, v.operation, v.version,
     v.before, v.after, v.actor, v.request_id, v.link_targets
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb) as v(sequence bigint, stack_id integer, id uuid,
     operation text, version integer, before jsonb, after jsonb, actor text, request_id text, link_targets jsonb)
   where h.organization_id = $1`,
)

// Deleted links are first added to those that once were: an erasure finds there whose log quotes a name. The order keeps two
// transactions that add the same from a deadlock.

/** $2: [{source_id, attribute_id}]. Remembers the links of these attributes, which {@link deleteLinksSql} then deletes. */
export const rememberLinksSql = statement(
  'remember_links',
  `insert into past_links (organization_id, target_id, source_id)
   select l.organization_id, l.target_id, l.source_id
   from jsonb_to_recordset($2::text::jsonb) as v(source_id uuid, attribute_id integer) cross join lateral (
     select k.organization_id, k.target_id, k.source_id from links k
     where k.organization_id = $1 and k.source_id = v.source_id and k.attribute_id = v.attribute_id offset 0
   ) l
   order by l.target_id, l.source_id on conflict do nothing`,
)

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

/** $2: ids of restored entities. Remembers the links from and to them, which {@link deleteLeftLinksSql} then deletes. */
export const rememberLeftLinksSql = statement(
  'remember_left_links',
  `insert into past_links (organization_id, target_id, source_id)
   select l.organization_id, l.target_id, l.source_id from links l
   where l.organization_id = $1 and (l.source_id = any($2::uuid[]) or l.target_id = any($2::uuid[]))
   order by l.target_id, l.source_id on conflict do nothing`,
)

/**
 * $2: ids of restored entities. Deletes the links from and to them that deletions have left behind. A link that a concurrent write
 * has added since they were remembered stays.
 */
export const deleteLeftLinksSql = statement(
  'delete_left_links',
  `delete from links l
   where l.organization_id = $1 and (l.source_id = any($2::uuid[]) or l.target_id = any($2::uuid[])) and exists (
     select from past_links p where p.organization_id = $1 and p.target_id = l.target_id and p.source_id = l.source_id
   )`,
)

/** $2: [{source_id, attribute_id, target_stack_id, target_id, position}]. Inserts links. */
export const insertLinksSql = statement(
  'link',
  `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
   select h.organization_id, v.source_id, v.attribute_id, v.target_stack_id, v.target_id, v.position
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb) as v(source_id uuid, attribute_id integer,
     target_stack_id integer, target_id uuid, position integer)
   where h.organization_id = $1`,
)

/**
 * $2: [{position, person_ids, consent_type_id, channel, state, collected_at, evidence}]. Returns those that the history of one
 * of the people has. An answer without `collected_at` equals one of any time.
 */
export const readKnownAnswersSql = statement(
  'read_known_answers',
  `select v.position, v.consent_type_id, v.channel
   from jsonb_to_recordset($2::text::jsonb) as v(position integer, person_ids uuid[], consent_type_id integer, channel text,
     state boolean, collected_at timestamptz, evidence jsonb) cross join lateral (
       select from consent_history h
       where h.organization_id = $1 and h.person_id = any(v.person_ids) and h.consent_type_id = v.consent_type_id
         and h.channel = v.channel and h.state = v.state and h.evidence is not distinct from v.evidence
         and (v.collected_at is null or coalesce(h.collected_at, h.at) = v.collected_at)
       limit 1
     ) h`,
)

/**
 * $2: [{person_id, version, consent_type_id, channel, previous_state, state, source, actor, request_id, collected_at,
 * evidence, superseded, pending}], $3: the time.
 */
export const appendConsentHistorySql = statement(
  'append_consent_history',
  `insert into consent_history (organization_id, person_id, version, consent_type_id, channel, previous_state, state,
     source, at, actor, request_id, collected_at, evidence, superseded, pending)
   select h.organization_id, v.person_id, v.version, v.consent_type_id, v.channel, v.previous_state, v.state, v.source, $3,
     v.actor, v.request_id, v.collected_at, v.evidence, v.superseded, v.pending
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb) as v(person_id uuid, version integer,
     consent_type_id integer, channel text, previous_state boolean, state boolean, source text, actor text, request_id text,
     collected_at timestamptz, evidence jsonb, superseded boolean, pending boolean)
   where h.organization_id = $1`,
)
