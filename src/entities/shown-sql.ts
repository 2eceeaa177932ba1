import { statement } from '../db/db.ts'

// What is read is made into JSON by the database, and reaches Node as one text: row by row a page of 50 cost Node 425 µs,
// a quarter of it for the garbage, and a GET 5 µs. What a read shows beyond the row comes as parameters from the
// definitions in memory, the last of a statement: $n relationship attributes: [{i: id, k: key, m: whether many}];
// of people: $n+1 [{n: order, k: key of the answer, or null where none counts, i: consent type, h: channel, d: shown
// without one}], $n+2: all d as text; of records: $n+1: the key of the stack.

const consents = (n: number) => `case when e.answers = '{}' then $${n + 2} else coalesce((
     select json_agg(
       case when e.answers ? c.k then json_build_object('consent_type_id', c.i, 'channel', c.h,
         'state', e.answers->c.k->'state', 'source', 'answer', 'answered_at', e.answers->c.k->'answered_at') else c.d end
       order by c.n)::text
     from jsonb_to_recordset($${n + 1}) as c(n integer, k text, i integer, h text, d json)
   ), '[]') end`

// Most have no links: one look at the index says so, and nothing of the rest is set up.
const attribute_values = (n: number) => `(case when exists (
     select from links l where l.organization_id = $1 and l.source_id = e.id
   ) then e.attributes || coalesce((
     select jsonb_object_agg(a.k, case when a.m then n.names else n.names->0 end order by a.i)
     from (
       select l.attribute_id, jsonb_agg(t.external_id order by l.position) as names
       from links l join entities t on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
       where l.organization_id = $1 and l.source_id = e.id group by l.attribute_id
     ) n join jsonb_to_recordset($${n}) as a(i integer, k text, m boolean) on a.i = n.attribute_id
   ), '{}') else e.attributes end)::text`

// How each kind of column is written. row_to_json looks up every column's type in every row, and to_char takes twice as
// long for a time as this does: a page of 50 took a quarter longer. A millisecond's zeros are kept by one microsecond more.
const text = (column: string) => `coalesce(to_json(e.${column})::text, 'null')`
const boolean = (column: string) => `case e.${column} when true then 'true' when false then 'false' else 'null' end`
const moment = (column: string) => `left(to_json(date_trunc('milliseconds', e.${column}) + '1us')::text, 24) || 'Z"'`

type Field = readonly [key: string, value: string]

/** A JSON object of these keys, whose values are written already. None may be NULL: all of it would be. */
const object = (fields: readonly Field[]) =>
  `'{' || ${fields.map(([key, value], index) => `'${index === 0 ? '' : ','}"${key}":' || ${value}`).join(' || ')} || '}'`

const texts = (...columns: string[]) => columns.map((column): Field => [column, text(column)])
const standing: readonly Field[] = [
  ['state', `case when e.active then '"active"' else '"placeholder"' end`],
  ['version', 'e.version::text'],
  ['created_at', moment('created_at')],
  ['updated_at', moment('updated_at')],
]

const shown = {
  person: (n: number) =>
    object([
      ['id', `'"' || e.id::text || '"'`],
      ...texts('external_id', 'first_name', 'last_name', 'email', 'mobile_prefix', 'mobile_number'),
      ...texts('date_of_birth', 'language'),
      ['email_consent', boolean('email_consent')],
      ['sms_consent', boolean('sms_consent')],
      ['push_notification_consent', boolean('push_notification_consent')],
      ['consents', consents(n)],
      ['attribute_values', attribute_values(n)],
      ...standing,
    ]),
  record: (n: number) =>
    object([
      ['record_id', `'"' || left(replace(e.id::text, '-', ''), 24) || '"'`],
      ...texts('external_id'),
      ['stack_key', `coalesce(to_json($${n + 1}::text)::text, 'null')`],
      ['attribute_values', attribute_values(n)],
      ...standing,
    ]),
}

const schema_version = '(select h.schema_version from change_heads h where h.organization_id = $1) as schema_version'

const page = (kind: 'person' | 'record', beyond: string, order: string) =>
  `select string_agg(x.shown, ',') filter (where x.n < $4) as items, count(*) = $4 as has_more, ${schema_version}
   from (
     select row_number() over (order by e.id ${order}) as n, ${shown[kind](5)} as shown from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id ${beyond} $3 order by e.id ${order} limit $4
   ) x`

/** $2: stack, $3: beyond this id, $4: how many and one more. A page as JSON texts, by kind and direction. */
export const read_shown_page = {
  person: {
    asc: statement('read_people_ascending', page('person', '>', 'asc')),
    desc: statement('read_people_descending', page('person', '<', 'desc')),
  },
  record: {
    asc: statement('read_records_ascending', page('record', '>', 'asc')),
    desc: statement('read_records_descending', page('record', '<', 'desc')),
  },
}

const those = (kind: 'person' | 'record', column: string, type: string) =>
  `select e.${column} as identifier, e.version, ${shown[kind](4)} as json,
     ${schema_version}
   from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = any($3::${type}[])`

/** $2: stack, $3: identifiers. Each as JSON text, beside the identifier it was asked by and its version. */
export const read_shown = {
  person: {
    id: statement('read_people_by_id', those('person', 'id', 'uuid')),
    external_id: statement('read_people_by_external_id', those('person', 'external_id', 'text')),
  },
  record: {
    id: statement('read_records_by_id', those('record', 'id', 'uuid')),
    external_id: statement('read_records_by_external_id', those('record', 'external_id', 'text')),
  },
}

// The inner select keeps what is left out from being printed.
const part = (kind: 'person' | 'record') =>
  `select string_agg(x.line, E'\\n') || E'\\n' as lines, (array_agg(x.id))[count(*)] as last from (
     select e.id, ${shown[kind](6)} as line from (
       select * from entities e
       where e.organization_id = $1 and e.stack_id = $2 and e.id > $3 order by e.id offset $4 limit $5
     ) e
   ) x`

/** $2: stack, $3: beyond this id, $4: how many more to leave out, $5: how many. A part of all there is, as lines of JSON in order of id, by kind. */
export const read_shown_part = {
  person: statement('read_people_part', part('person')),
  record: statement('read_records_part', part('record')),
}
