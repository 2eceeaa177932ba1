import { statement } from '../db/db.ts'
import { timeText } from '../db/time-text.ts'

const times = `'created_at', ${timeText('d.created_at')}, 'updated_at', ${timeText('d.updated_at')}`
const index = `case when d.index_id is not null then jsonb_build_object('id', d.index_id, 'ready', d.index_ready,
           'indexed', coalesce(f.indexed, 0), 'total', coalesce(f.total, 0)) end`

const textVersions = `coalesce((
           select max(t.version) from consent_texts t where t.organization_id = $1 and t.consent_type_id = d.id
         ), 0)`

/**
 * The definitions of an organization that changed after version $2, and related rows, read in one snapshot. So the cost
 * depends on the number of changes. Reading all of 1,000 attributes takes 14 ms of PostgreSQL.
 */
export const readDefinitionsSql = statement(
  'read_definitions',
  `select h.schema_version as version,
     coalesce((select jsonb_agg(jsonb_build_object('id', d.id, 'key', d.key, 'name', d.name, 'kind', d.kind,
         'retention_days', d.retention_days, 'label', d.label, 'summary', d.summary, 'erased_with', d.erased_with, ${times})
         order by d.id) from stacks d where d.organization_id = $1 and d.version > $2), '[]') as stacks,
     coalesce((select jsonb_agg(jsonb_build_object('id', d.id, 'owner_stack_id', d.owner_stack_id, 'key', d.key,
         'name', d.name, 'description', d.description, 'type', d.type, 'target_stack_id', d.target_stack_id,
         'cardinality', d.cardinality, 'indexed', d.indexed, 'searchable', d.searchable, 'state', d.state, 'index', ${index},
         ${times}) || d.rules
         order by d.id) from attributes d left join fills f on f.organization_id = $1 and f.index_id = d.index_id
         where d.organization_id = $1 and d.version > $2), '[]') as attributes,
     coalesce((select jsonb_agg(jsonb_build_object('id', d.id, 'key', d.key, 'name', d.name, 'description', d.description,
         'state', d.state, 'mandatory', d.mandatory, 'default_state', d.default_state, 'channels', d.channels,
         'text_versions', ${textVersions}, ${times})
         order by d.id) from consent_types d where d.organization_id = $1 and d.version > $2), '[]') as consent_types,
     coalesce((select jsonb_agg(jsonb_build_object('stack_id', s.stack_id, 'field', s.field, 'id', s.index_id,
         'ready', s.ready, 'indexed', coalesce(f.indexed, 0), 'total', coalesce(f.total, 0)) order by s.index_id)
         from sort_indexes s left join fills f on f.organization_id = $1 and f.index_id = s.index_id
         where s.organization_id = $1), '[]') as sort_indexes,
     coalesce((select jsonb_agg(jsonb_build_object('id', d.id, 'key', d.key, 'name', d.name, 'description', d.description,
         'filter', d.filter, 'filter_changed_at', ${timeText('d.filter_changed_at')}, ${times})
         order by d.id) from segments d
         where d.organization_id = $1 and d.deleted_at is null and d.version > $2), '[]') as segments,
     coalesce((select jsonb_agg(jsonb_build_object('id', d.id, 'key', d.key, 'name', d.name, 'scope', d.scope,
         'fields', d.fields, 'state', d.state, ${times}) order by d.id) from roles d where d.organization_id = $1), '[]') as roles,
     array(select d.id from segments d
       where d.organization_id = $1 and d.deleted_at is not null and d.version > $2) as deleted_segments,
     coalesce((select max(d.id) from segments d where d.organization_id = $1), 0) as last_segment_id,
     exists (select from aliases a where a.organization_id = $1)
       or exists (select from merges m where m.organization_id = $1 and m.unmerged_sequence is null) as has_aliases,
     exists (select from tombstones t where t.organization_id = $1) as has_tombstones,
     coalesce((select s.time_zone from organization_settings s where s.organization_id = $1), 'UTC') as time_zone,
     (select s.default_country from organization_settings s where s.organization_id = $1) as default_country
   from change_heads h where h.organization_id = $1`,
)

export const readSchemaVersionSql = statement(
  'read_schema_version',
  'select schema_version from change_heads where organization_id = $1',
)

/**
 * A text that changes whenever the schema version of any organization changes. It costs a tenth of {@link
 * readVersionsSql}.
 */
export const digestVersionsSql = statement(
  'digest_versions',
  `select sum(hashint8extended(h.organization_id::bigint << 32 | h.schema_version, 0))::text as digest from change_heads h`,
)

/** The schema version of every organization. Background tasks use it to find changed definitions. */
export const readVersionsSql = statement('read_versions', 'select organization_id, schema_version from change_heads')

/**
 * Every transaction that changes an organization begins with this lock, so an organization has one writer at a time.
 */
export const lockHeadSql = statement(
  'lock_head',
  'select schema_version, sequence from change_heads where organization_id = $1 for update',
)

/**
 * $2: the number of changes, which take their numbers from the head, $3: their time, $4: the increment of the version
 * of the definitions. Locks the head. As store-sql.ts of entities/write, it keeps the latest time and the largest
 * setback, which the search by time needs.
 */
export const numberChangesSql = statement(
  'number_changes',
  `update change_heads h set sequence = h.sequence + $2, schema_version = h.schema_version + $4,
     latest_at = greatest(h.latest_at, $3::timestamptz), max_setback = greatest(h.max_setback, h.latest_at - $3::timestamptz)
   where h.organization_id = $1`,
)

/**
 * $2: [{n, subject, definition_id, operation, before, after}], with n from 1, $3: the time, $4: actor, $5: request id.
 * Runs after the transaction has taken the numbers, so the head has the last one.
 */
export const appendDefinitionChangesSql = statement(
  'append_definition_changes',
  `insert into changes (organization_id, sequence, at, subject, definition_id, operation, before, after, actor, request_id)
   select h.organization_id, h.sequence - max(v.n) over () + v.n, $3, v.subject, v.definition_id, v.operation, v.before,
     v.after, $4, $5
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb)
     as v(n integer, subject text, definition_id integer, operation text, before jsonb, after jsonb)
   where h.organization_id = $1`,
)

/** $2: number of a change. Returns the later changes of definitions, the last one first. */
export const readDefinitionChangesSql = statement(
  'read_definition_changes',
  `select c.sequence, c.subject, c.definition_id, c.operation, c.before from changes c
   where c.organization_id = $1 and c.entity_id is null and c.subject in ('stack', 'attribute', 'consent_type')
     and c.sequence > $2
   order by c.sequence desc`,
)
