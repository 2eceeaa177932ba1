import { statement } from '../db/db.ts'

/** Of each of these a person's row holds a text, in the order of reads. Records leave them null. */
export const profileTexts = [
  'first_name',
  'last_name',
  'email',
  'mobile_prefix',
  'mobile_number',
  'date_of_birth',
  'language',
] as const

/** Of each of these it holds a boolean. */
export const profileFlags = ['email_consent', 'sms_consent', 'push_notification_consent'] as const

// Every set travels as one text parameter: half the Node CPU of one array per column, as many rows a second.

const columns = `e.stack_id, e.id, e.external_id, e.active, e.version, e.first_name, e.last_name, e.email, e.mobile_prefix,
  e.mobile_number, e.date_of_birth, e.language, e.email_consent, e.sms_consent, e.push_notification_consent, e.answers,
  e.attributes`

// The planner takes a set for a hundred rows and an organization for an average one, and would scan a large one for a
// single write (90 ms at 100,000 people beside 10,000 small organizations). `cross join lateral (… offset 0)` leaves it
// one way: an index look-up for each element.

/**
 * $2: [{s: stack, e: external id | i: id}]. Locks the rows in order of id, the order every set takes its locks in, and
 * answers where each lies (`place`), and the name it was found by (`asked`): a row that was renamed while this waited
 * bears another by now.
 */
export const lockEntitiesSql = statement(
  'lock_entities',
  `with addressed as materialized (
     select a.s, a.e, a.i from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text, i uuid)
   ), wanted as materialized (
     select a.s as stack_id, e.id, a.e as asked from addressed a cross join lateral (
       select e.id from entities e where e.organization_id = $1 and e.stack_id = a.s and e.external_id = a.e offset 0
     ) e
     union
     select a.s, a.i, null from addressed a where a.i is not null
     order by 2
   )
   select locked.*, w.asked from wanted w cross join lateral (
     select e.ctid as place, ${columns} from entities e
     where e.organization_id = $1 and e.stack_id = w.stack_id and e.id = w.id for update
   ) locked`,
)

/**
 * As above, of one stack and by external id alone, as almost every set is: $2: stack, $3: the names, a line each. Of a set of
 * 512 it takes half the time where nobody bears them (0.76 ms instead of 1.5) and four fifths where everybody is there.
 */
export const lockNamedSql = statement(
  'lock_named',
  `with wanted as materialized (
     select e.id, a.name as asked from string_to_table($3, E'\\n') as a(name) cross join lateral (
       select e.id from entities e where e.organization_id = $1 and e.stack_id = $2 and e.external_id = a.name offset 0
     ) e
     order by 1
   )
   select locked.*, w.asked from wanted w cross join lateral (
     select e.ctid as place, ${columns} from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id = w.id for update
   ) locked`,
)

/** $2: [{s: stack, e: external id}]. Who bears these names; nobody is locked. */
export const readBearersSql = statement(
  'read_bearers',
  `select a.s as stack_id, a.e as external_id, e.id
   from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text) cross join lateral (
     select e.id from entities e where e.organization_id = $1 and e.stack_id = a.s and e.external_id = a.e offset 0
   ) e`,
)

/**
 * $2: [{s: stack, e: external id}]. The version at which the last entity that had such a name left it, by a deletion or a rename.
 * Where no name was ever left, a thousand names cost one look.
 */
export const readNamesLeftSql = statement(
  'read_names_left',
  `select a.s as stack_id, a.e as external_id, c.version
   from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text) cross join lateral (
     select c.version from changes c
     where c.organization_id = $1 and c.stack_id = a.s and (c.before->>'external_id') collate "C" = a.e
       and c.before->>'external_id' is not null
     order by c.version desc limit 1
   ) c
   where exists (select from changes h where h.organization_id = $1 and h.before->>'external_id' is not null)`,
)

/** $2: [{i: source id, a: [attribute ids]}]. Its own statement after the locks: the locking one's snapshot is too old. */
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
 * New rows in order of their names. A name that another transaction is taking is waited for; once it is taken this fails, and
 * the set is decided again. (That it fails, instead of leaving the name out, lets it travel with what follows: a round
 * trip less, a tenth more creates a second.) Beside `insert … from jsonb_to_recordset` COPY takes the database
 * a quarter less time for a set of 24, half of it for one of 1,024, and no more for one.
 */
export const makeEntitiesSql = statement(
  'make_entities',
  `copy entities (organization_id, stack_id, id, external_id, active, version, first_name, last_name, email, mobile_prefix,
     mobile_number, date_of_birth, language, email_consent, sms_consent, push_notification_consent, answers, attributes,
     created_at, updated_at) from stdin (format binary)`,
)

/**
 * $2: [{s: stack, e: external id, v: version}], of what was just made. A name is left by a commit before it can be taken again, so
 * behind `make_entities` every leaving is seen, also one between `read_names_left` and now. Where a version does not go on
 * from it, the head's not-null constraint fails the transaction: it is decided again.
 */
export const checkVersionsMadeSql = statement(
  'check_versions_made',
  `update change_heads set sequence = null
   where organization_id = $1
     and exists (select from changes h where h.organization_id = $1 and h.before->>'external_id' is not null)
     and exists (
       select from jsonb_to_recordset($2::text::jsonb) as a(s integer, e text, v integer)
       where a.v is distinct from 1 + coalesce((
         select c.version from changes c
         where c.organization_id = $1 and c.stack_id = a.s and (c.before->>'external_id') collate "C" = a.e
           and c.before->>'external_id' is not null
         order by c.version desc limit 1
       ), 0)
     )`,
)

const textColumn = (name: string) => `${name} = case when v.p ? '${name}' then v.p->>'${name}' else e.${name} end`
const booleanColumn = (name: string) =>
  `${name} = case when v.p ? '${name}' then (v.p->>'${name}')::boolean else e.${name} end`

// $2: changes in order, $3: how many, $4: the schema version they were decided on, $5: the time.
// [{n, s: stack, i: id, t: place of the locked row, o: operation, v: version, b: before, f: after, u: actor,
//   r: request id, p: columns | null, a: attributes to set, d: keys to remove}]
// Updates and deletes what changed, and takes the numbers from the head as the transaction's last lock: its new values count
// the rows, so it waits for `updated`, which may wait for a name. On another schema version the head's not-null constraint
// fails the transaction: it is decided again. So it is where fewer rows were stored than intended: their places come from an
// earlier statement, and a trigger or an extension may have moved a row since. A row that somebody holds is waited for shortly,
// the head for as long as it takes: it goes from hand to hand, and on a slow disk each keeps it for longer than that.
const stored = (next: string) => `with v as materialized (
     select * from jsonb_to_recordset($2::text::jsonb) as v(n integer, s integer, i uuid, t tid, o text, v integer,
       b jsonb, f jsonb, u text, r text, p jsonb, a jsonb, d text[])
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
           = (select count(*) from v where v.p is not null or v.o = 'delete') then ${next} end,
       schema_version = case when h.schema_version = $4::integer then h.schema_version end
     where h.organization_id = $1 and set_config('lock_timeout', '0', true) is not null
     returning h.sequence - $3::integer as base
   )`

/** As above, and appends the log: of sets that wait for nothing but the next round trip. */
export const applyChangesSql = statement(
  'apply_changes',
  `${stored('h.sequence + $3::integer')}
   insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before, after,
     actor, request_id)
   select $1, head.base + v.n, $5, 'entity', v.s, v.i, v.o, v.v, v.b, v.f, v.u, v.r from v, head`,
)

/** How many numbers a session takes at once: the cache of `change_numbers`. */
export const numbersAtOnce = 4_096

// The first of them is the head's own, which is taken already. Between the two calls another session may have set the
// sequence: its number is not ours then, and null for the head's fails the transaction: it is decided again.
const numbered = `case when setval('change_numbers', h.sequence, false) = h.sequence then
  case when nextval('change_numbers') = h.sequence then h.sequence + $3::integer end end`

/**
 * As above, but the log is appended by {@link appendChangesSql}, of a large set: the session has its numbers then, if they are
 * fewer than `numbersAtOnce`. $2 has what is updated or deleted alone, without n, b, f, u and r.
 */
export const storeChangesSql = statement('store_changes', `${stored(numbered)} select from head`)

/** Of 1,024 changes in half the time that inserting them takes. Right behind {@link storeChangesSql}: `sequence` has the numbers. */
export const appendChangesSql = statement(
  'append_changes',
  `copy changes (organization_id, at, subject, stack_id, entity_id, operation, version, before, after, actor,
     request_id) from stdin (format binary)`,
)

/** $2: [{i: source id, a: attribute id}]. */
export const unlink = statement(
  'unlink',
  `delete from links l where l.organization_id = $1 and l.ctid = any(array(
     select k.ctid from jsonb_to_recordset($2::text::jsonb) as v(i uuid, a integer) cross join lateral (
       select k.ctid from links k where k.organization_id = $1 and k.source_id = v.i and k.attribute_id = v.a offset 0
     ) k
   ))`,
)

/** $2: [{i: source id, a: attribute id, s: target stack, t: target id, p: position}]. */
export const link = statement(
  'link',
  `insert into links (organization_id, source_id, attribute_id, target_stack_id, target_id, position)
   select $1, v.i, v.a, v.s, v.t, v.p
   from jsonb_to_recordset($2::text::jsonb) as v(i uuid, a integer, s integer, t uuid, p integer)`,
)

/** $2: [{i: person, v: version, c: consent type, h: channel, b: previous state, s: state, o: source, u: actor, r: request id}], $3: the time. */
export const appendConsentHistorySql = statement(
  'append_consent_history',
  `insert into consent_history (organization_id, person_id, version, consent_type_id, channel, previous_state, state,
     source, at, actor, request_id)
   select $1, v.i, v.v, v.c, v.h, v.b, v.s, v.o, $3, v.u, v.r
   from jsonb_to_recordset($2::text::jsonb) as v(i uuid, v integer, c integer, h text, b boolean, s boolean, o text,
     u text, r text)`,
)
