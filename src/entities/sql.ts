import { statement } from '../db/db.ts'

/** The text columns of a person, in the order of reads. They are null for records. */
export const profileTexts = [
  'first_name',
  'last_name',
  'email',
  'mobile_prefix',
  'mobile_number',
  'date_of_birth',
  'language',
] as const

/** The boolean columns of a person, in the order of reads. They are null for records. */
export const profileFlags = ['email_consent', 'sms_consent', 'push_notification_consent'] as const

// Each set is sent as one JSON text parameter. That takes half the Node CPU of one array per column, at the same rows
// per second.

const columns = `e.stack_id, e.id, e.external_id, e.active, e.version, e.first_name, e.last_name, e.email, e.mobile_prefix,
  e.mobile_number, e.date_of_birth, e.language, e.email_consent, e.sms_consent, e.push_notification_consent, e.answers,
  e.attributes`

// The planner expects 100 rows of a set and an average number of rows of an organization. It would scan a large
// organization for a single write (90 ms with 100,000 people, among 10,000 small organizations). `cross join lateral (…
// offset 0)` forces an index look-up for each element.

/**
 * $2: [{s: stack, e: external id | i: id}]. Locks the rows in order of id, as every set does. Returns each row with its
 * `ctid` and the name it was looked up by (`requested_name`). If the row was renamed while the statement waited for the
 * lock, that differs from its `external_id`.
 */
export const lockEntitiesSql = statement(
  'lock_entities',
  `with addressed as materialized (
     select a.s, a.e, a.i from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text, i uuid)
   ), wanted as materialized (
     select a.s as stack_id, e.id, a.e as requested_name from addressed a cross join lateral (
       select e.id from entities e where e.organization_id = $1 and e.stack_id = a.s and e.external_id = a.e offset 0
     ) e
     union
     select a.s, a.i, null from addressed a where a.i is not null
     order by 2
   )
   select locked.*, w.requested_name from wanted w cross join lateral (
     select e.ctid, ${columns} from entities e
     where e.organization_id = $1 and e.stack_id = w.stack_id and e.id = w.id for update
   ) locked`,
)

/**
 * As {@link lockEntitiesSql}, for sets of one stack addressed by external id only, as almost all are. $2: stack, $3:
 * external ids, one per line. For a set of 512 it takes half the time if no entity exists (0.76 ms instead of 1.5 ms)
 * and four fifths if all exist.
 */
export const lockNamedSql = statement(
  'lock_named',
  `with wanted as materialized (
     select e.id, a.name as requested_name from string_to_table($3, E'\\n') as a(name) cross join lateral (
       select e.id from entities e where e.organization_id = $1 and e.stack_id = $2 and e.external_id = a.name offset 0
     ) e
     order by 1
   )
   select locked.*, w.requested_name from wanted w cross join lateral (
     select e.ctid, ${columns} from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id = w.id for update
   ) locked`,
)

/** $2: [{s: stack, e: external id}]. Returns the ids of the entities with these names, without locks. */
export const readBearersSql = statement(
  'read_bearers',
  `select a.s as stack_id, a.e as external_id, e.id
   from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text) cross join lateral (
     select e.id from entities e where e.organization_id = $1 and e.stack_id = a.s and e.external_id = a.e offset 0
   ) e`,
)

/** Whether an entity of the organization ever released a name. */
const hasReleases = `exists (select from changes h where h.organization_id = $1 and h.before->>'external_id' is not null)`

/** The version at which the last entity released the name a.e of the stack a.s. */
const lastRelease = `select c.version from changes c
       where c.organization_id = $1 and c.stack_id = a.s and (c.before->>'external_id') collate "C" = a.e
         and c.before->>'external_id' is not null
       order by c.version desc limit 1`

/**
 * $2: [{s: stack, e: external id}]. Returns the version at which the last entity released each name by deletion or
 * rename. If the organization never released a name, 1,000 names cost one index look-up.
 */
export const readNamesLeftSql = statement(
  'read_names_left',
  `select a.s as stack_id, a.e as external_id, c.version
   from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text) cross join lateral (
     ${lastRelease}
   ) c
   where ${hasReleases}`,
)

/**
 * $2: [{i: source id, a: [attribute ids]}]. Runs after the locking statement, whose snapshot is older than its locks.
 */
export const readLinksSql = statement(
  'read_links',
  `select s.i as source_id, l.attribute_id, t.id, t.external_id
   from jsonb_to_recordset($2::text::jsonb) as s(i uuid, a integer[]) cross join lateral (
     select l.attribute_id, l.target_stack_id, l.target_id, l.position from links l
     where l.organization_id = $1 and l.source_id = s.i and l.attribute_id = any(s.a) offset 0
   ) l cross join lateral (
     select t.id, t.external_id from entities t
     where t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id offset 0
   ) t
   order by s.i, l.attribute_id, l.position`,
)

/**
 * Inserts rows in order of their names. If another transaction is inserting one of the names, COPY waits for it. If
 * that transaction commits, COPY fails, and the set is decided again. Failing, instead of skipping the name, lets the
 * next statements be pipelined with it. That saves a round trip and gives a tenth more creates per second. Compared
 * with `insert … from jsonb_to_recordset`, COPY takes a quarter less time in the database for a set of 24, half the
 * time for 1,024, and the same time for one.
 */
export const makeEntitiesSql = statement(
  'make_entities',
  `copy entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name, email, mobile_prefix,
     mobile_number, date_of_birth, language, email_consent, sms_consent, push_notification_consent, answers, attributes,
     created_at, updated_at) from stdin (format binary)`,
)

/**
 * $2: [{s: stack, e: external id, v: version}] of the inserted rows. A name can be inserted again only after the
 * transaction that released it commits. After `make_entities`, this statement therefore sees every release, also one
 * since `read_names_left`. If a version does not continue from the last release, the not-null constraint of the head
 * fails the transaction, and the set is decided again.
 */
export const checkVersionsMadeSql = statement(
  'check_versions_made',
  `update change_heads set sequence = null
   where organization_id = $1
     and ${hasReleases}
     and exists (
       select from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text, v integer)
       where a.v is distinct from 1 + coalesce((
         ${lastRelease}
       ), 0)
     )`,
)

const textColumn = (name: string) => `${name} = case when v.p ? '${name}' then v.p->>'${name}' else e.${name} end`
const booleanColumn = (name: string) =>
  `${name} = case when v.p ? '${name}' then (v.p->>'${name}')::boolean else e.${name} end`

// $2: changes in order, $3: their number, $4: the schema version of their decisions, $5: the time.
// [{n, s: stack, i: id, t: ctid of the locked row, o: operation, v: version, b: before, f: after, u: actor,
//   r: request id, l: link targets, p: columns | null, a: attributes to set, d: keys to remove}]
// Updates and deletes rows, and takes change numbers from the head, which is the last lock of the transaction. The new
// values of the head count the stored rows, so `head` runs after `updated`, which may wait for a name. The not-null
// constraints of the head fail the transaction in two cases, and the set is decided again: the schema version differs,
// or fewer rows were stored than intended. The ctids come from an earlier statement, and a trigger or an extension may
// have moved a row since. The lock timeout applies to rows but not to the head. Every write of the organization locks
// the head in turn, and on a slow disk each commit holds it longer than the timeout.
const storeWith = (nextSequence: string) => `with v as materialized (
     select * from jsonb_to_recordset($2::text::jsonb) as v(n integer, s integer, i uuid, t tid, o text, v integer,
       b jsonb, f jsonb, u text, r text, l jsonb, p jsonb, a jsonb, d text[])
   ), updated as (
     update entities e set
       ${['external_id', ...profileTexts].map(textColumn).join(', ')},
       ${profileFlags.map(booleanColumn).join(', ')},
       active = e.active or v.p ? 'active',
       answers = coalesce(v.p->'answers', e.answers),
       attributes = case when v.a is null then e.attributes else (e.attributes - v.d) || v.a end,
       version = v.v,
       updated_at = $5
     from v
     where e.ctid = any(array(select v.t from v where v.p is not null))
       and e.organization_id = $1 and e.stack_id = v.s and e.id = v.i and v.p is not null and e.version = v.v - 1
     returning 1
   ), deleted as (
     delete from entities e using v
     where e.ctid = any(array(select v.t from v where v.o = 'delete'))
       and e.organization_id = $1 and e.stack_id = v.s and e.id = v.i and v.o = 'delete' and e.version = v.v - 1
     returning 1
   ), head as (
     update change_heads h set
       sequence = case
         when (select count(*) from updated) + (select count(*) from deleted)
           = (select count(*) from v where v.p is not null or v.o = 'delete') then ${nextSequence} end,
       schema_version = case when h.schema_version = $4::integer then h.schema_version end
     where h.organization_id = $1 and set_config('lock_timeout', '0', true) is not null
     returning h.sequence - $3::integer as base
   )`

/** Stores the changes and appends the log. Used for small sets, whose cost is mostly the round trip. */
export const applyChangesSql = statement(
  'apply_changes',
  `${storeWith('h.sequence + $3::integer')}
   insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after,
     actor, request_id, link_targets)
   select $1, head.base + v.n, $5, 'entity', v.s, v.i, v.o, v.v, v.b, v.f, v.u, v.r, v.l from v, head`,
)

/** The cache size of the sequence `change_numbers`: a session reserves this many numbers. */
export const sequenceCacheSize = 4_096

// Sets the sequence to the head's number and reserves the numbers after it. nextval first returns the head's own
// number, which is already used. If another session sets the sequence between the two calls, nextval returns a
// different number. The head's number then becomes null, which fails the transaction, and the set is decided again.
const reservedNumbers = `case when setval('change_numbers', h.sequence, false) = h.sequence then
  case when nextval('change_numbers') = h.sequence then h.sequence + $3::integer end end`

/**
 * Stores the changes of a large set; {@link appendChangesSql} appends the log. The session reserves the change numbers,
 * so there must be fewer than `sequenceCacheSize`. $2 holds only the updates and deletions, without n, b, f, u, r and l.
 */
export const storeChangesSql = statement('store_changes', `${storeWith(reservedNumbers)} select from head`)

/**
 * Appends the log right after {@link storeChangesSql}; the column default of `sequence` supplies the reserved numbers.
 * For 1,024 changes it takes half the time of an insert.
 */
export const appendChangesSql = statement(
  'append_changes',
  `copy changes (organization_id, at, subject, stack_id, entity_id, operation, version, before, after, actor,
     request_id, link_targets) from stdin (format binary)`,
)

/** $2: [{i: source id, a: attribute id}]. Deletes the links of these attributes. */
export const deleteLinksSql = statement(
  'unlink',
  `delete from links l where l.organization_id = $1 and l.ctid = any(array(
     select k.ctid from jsonb_to_recordset($2::text::jsonb) as v(i uuid, a integer) cross join lateral (
       select k.ctid from links k where k.organization_id = $1 and k.source_id = v.i and k.attribute_id = v.a offset 0
     ) k
   ))`,
)

/** $2: ids of restored entities. Deletes the links to them that their deletion left behind. */
export const deleteLinksToSql = statement(
  'unlink_targets',
  'delete from links l where l.organization_id = $1 and l.target_id = any($2::uuid[])',
)

/** $2: [{i: source id, a: attribute id, s: target stack, t: target id, p: position}]. Inserts links. */
export const insertLinksSql = statement(
  'link',
  `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
   select $1, v.i, v.a, v.s, v.t, v.p
   from jsonb_to_recordset($2::text::jsonb) as v(i uuid, a integer, s integer, t uuid, p integer)`,
)

/**
 * $2: [{i: person, v: version, c: consent type, h: channel, b: previous state, s: state, o: source, u: actor,
 * r: request id}], $3: the time.
 */
export const appendConsentHistorySql = statement(
  'append_consent_history',
  `insert into consent_history (organization_id, person_id, version, consent_type_id, channel, previous_state, state,
     source, at, actor, request_id)
   select $1, v.i, v.v, v.c, v.h, v.b, v.s, v.o, $3, v.u, v.r
   from jsonb_to_recordset($2::text::jsonb) as v(i uuid, v integer, c integer, h text, b boolean, s boolean, o text,
     u text, r text)`,
)
