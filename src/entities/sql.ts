import { statement } from '../db/db.ts'

// Every set travels as one text parameter: half the Node CPU of one array per column, as many rows a second.

const columns = `e.stack_id, e.id, e.external_id, e.active, e.version, e.first_name, e.last_name, e.email, e.mobile_prefix,
  e.mobile_number, e.date_of_birth, e.language, e.email_consent, e.sms_consent, e.push_notification_consent, e.answers,
  e.attributes, e.created_at, e.updated_at`

/**
 * $2: [{s: stack, e: external id | i: id}]. Locks the rows in order of id, the order every set takes its locks in.
 * A row that was renamed while this waited comes back under its new name: the caller compares.
 */
export const lock_entities = statement(
  'lock_entities',
  `with addressed as materialized (
     select a.s, a.e, a.i from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text, i uuid)
   ), wanted as materialized (
     select e.stack_id, e.id from addressed a
       join entities e on e.organization_id = $1 and e.stack_id = a.s and e.external_id = a.e
     union
     select a.s, a.i from addressed a where a.i is not null
   )
   select ${columns} from wanted w
     join entities e on e.organization_id = $1 and e.stack_id = w.stack_id and e.id = w.id
   order by e.id for update of e`,
)

/** $2: [{s: stack, e: external id}]. Who bears these names; nobody is locked. */
export const read_bearers = statement(
  'read_bearers',
  `select e.stack_id, e.external_id, e.id from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text)
     join entities e on e.organization_id = $1 and e.stack_id = a.s and e.external_id = a.e`,
)

/** $2: [{i: source id, a: [attribute ids]}]. Its own statement after the locks: the locking one's snapshot is too old. */
export const read_links = statement(
  'read_links',
  `select l.source_id, l.attribute_id, t.id, t.external_id
   from jsonb_to_recordset($2::text::jsonb) as s(i uuid, a integer[])
     join links l on l.organization_id = $1 and l.source_id = s.i and l.attribute_id = any(s.a)
     join entities t on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
   order by l.source_id, l.attribute_id, l.position`,
)

/**
 * $2: new rows in order of their names, $3: the time. Names that another transaction took meanwhile are waited for
 * and left out of the answer: the set is then decided again.
 */
export const make_entities = statement(
  'make_entities',
  `insert into entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name, email,
     mobile_prefix, mobile_number, date_of_birth, language, email_consent, sms_consent, push_notification_consent,
     answers, attributes, created_at, updated_at)
   select $1, v.stack_id, v.id, v.external_id, v.active, v.version, v.first_name, v.last_name, v.email,
     v.mobile_prefix, v.mobile_number, v.date_of_birth, v.language, v.email_consent, v.sms_consent,
     v.push_notification_consent, coalesce(v.answers, '{}'), coalesce(v.attributes, '{}'), $3, $3
   from jsonb_to_recordset($2::text::jsonb) as v(stack_id integer, id uuid, external_id text, active boolean,
     version integer, first_name text, last_name text, email text, mobile_prefix text, mobile_number text,
     date_of_birth text, language text, email_consent boolean, sms_consent boolean,
     push_notification_consent boolean, answers jsonb, attributes jsonb)
   on conflict do nothing
   returning id`,
)

const text_column = (name: string) => `${name} = case when v.p ? '${name}' then v.p->>'${name}' else e.${name} end`
const boolean_column = (name: string) =>
  `${name} = case when v.p ? '${name}' then (v.p->>'${name}')::boolean else e.${name} end`

/**
 * $2: changes in order, $3: how many, $4: the schema version they were decided on, $5: the time.
 * [{n, s: stack, i: id, o: operation, v: version, b: before, f: after, u: actor, r: request id,
 *   p: columns | null, a: attributes to set, d: keys to remove}]
 * Updates and deletes what changed, takes the numbers from the head as the transaction's last lock, appends the log.
 * On another schema version the head's not-null constraint fails the transaction: it is decided again.
 */
export const apply_changes = statement(
  'apply_changes',
  `with v as materialized (
     select * from jsonb_to_recordset($2::text::jsonb) as v(n integer, s integer, i uuid, o text, v integer, b jsonb,
       f jsonb, u text, r text, p jsonb, a jsonb, d text[])
   ), head as (
     update change_heads h set sequence = h.sequence + $3::integer,
       schema_version = case when h.schema_version = $4::integer then h.schema_version end
     where h.organization_id = $1
     returning h.sequence - $3::integer as base
   ), updated as (
     update entities e set
       ${['external_id', 'first_name', 'last_name', 'email', 'mobile_prefix', 'mobile_number'].map(text_column).join(', ')},
       ${['date_of_birth', 'language'].map(text_column).join(', ')},
       ${['email_consent', 'sms_consent', 'push_notification_consent'].map(boolean_column).join(', ')},
       active = e.active or v.p ? 'active',
       answers = coalesce(v.p->'answers', e.answers),
       attributes = case when v.a is null then e.attributes else (e.attributes - v.d) || v.a end,
       version = v.v,
       updated_at = $5
     from v
     where e.organization_id = $1 and e.stack_id = v.s and e.id = v.i and v.p is not null
   ), deleted as (
     delete from entities e using v
     where e.organization_id = $1 and e.stack_id = v.s and e.id = v.i and v.o = 'delete'
   )
   insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after,
     actor, request_id)
   select $1, head.base + v.n, $5, 'entity', v.s, v.i, v.o, v.v, v.b, v.f, v.u, v.r from v, head`,
)

/** $2: [{i: source id, a: attribute id}]. */
export const unlink = statement(
  'unlink',
  `delete from links l using jsonb_to_recordset($2::text::jsonb) as v(i uuid, a integer)
   where l.organization_id = $1 and l.source_id = v.i and l.attribute_id = v.a`,
)

/** $2: [{i: source id, a: attribute id, s: target stack, t: target id, p: position}]. */
export const link = statement(
  'link',
  `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
   select $1, v.i, v.a, v.s, v.t, v.p
   from jsonb_to_recordset($2::text::jsonb) as v(i uuid, a integer, s integer, t uuid, p integer)`,
)

/** $2: [{i: person, v: version, c: consent type, h: channel, b: previous state, s: state, o: source, u: actor, r: request id}], $3: the time. */
export const append_consent_history = statement(
  'append_consent_history',
  `insert into consent_history (organization_id, person_id, version, consent_type_id, channel, previous_state, state,
     source, at, actor, request_id)
   select $1, v.i, v.v, v.c, v.h, v.b, v.s, v.o, $3, v.u, v.r
   from jsonb_to_recordset($2::text::jsonb) as v(i uuid, v integer, c integer, h text, b boolean, s boolean, o text,
     u text, r text)`,
)

const linked = `(select json_agg(json_build_array(l.attribute_id, t.id, t.external_id) order by l.attribute_id, l.position)
   from links l join entities t
     on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
   where l.organization_id = $1 and l.source_id = e.id) as links`
const schema_version = '(select h.schema_version from change_heads h where h.organization_id = $1) as schema_version'

/** The head of every read: entities e, each with its links and the schema version of the same moment. $1: organization. */
export const read_entities = `select ${columns}, ${linked}, ${schema_version} from entities e`

/** $2: stack, $3: external ids. Each with its links and the schema version of the same moment. */
export const read_by_external_id = statement(
  'read_by_external_id',
  `${read_entities}
   where e.organization_id = $1 and e.stack_id = $2 and e.external_id = any($3::text[])`,
)

/** $2: stack, $3: ids. Each with its links and the schema version of the same moment. */
export const read_by_id = statement(
  'read_by_id',
  `${read_entities}
   where e.organization_id = $1 and e.stack_id = $2 and e.id = any($3::uuid[])`,
)
