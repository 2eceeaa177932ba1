import { statement } from '../db/db.ts'

// What is read is made into JSON by the database, and reaches Node as one text: row by row a page of 50 cost Node 425 µs,
// a quarter of it for the garbage, and a GET 5 µs. What a read shows beyond the row comes as parameters from the
// definitions in memory, the last of a statement: $n relationship attributes: [{i: id, k: key, m: whether many}];
// of people: $n+1 [{n: order, k: key of the answer, or null where none counts, i: consent type, h: channel, d: shown
// without one}], $n+2: all d; of records: $n+1: the key of the stack.

const consents = (n: number) => `case when e.answers = '{}' then $${n + 2} else (
     select json_agg(
       case when e.answers ? c.k then json_build_object('consent_type_id', c.i, 'channel', c.h,
         'state', e.answers->c.k->'state', 'source', 'answer', 'answered_at', e.answers->c.k->'answered_at') else c.d end
       order by c.n)
     from jsonb_to_recordset($${n + 1}) as c(n integer, k text, i integer, h text, d json)
   ) end as consents`

// Most have no links: one look at the index says so, and nothing of the rest is set up.
const attribute_values = (n: number) => `case when exists (
     select from links l where l.organization_id = $1 and l.source_id = e.id
   ) then e.attributes || coalesce((
     select jsonb_object_agg(a.k, case when a.m then n.names else n.names->0 end order by a.i)
     from (
       select l.attribute_id, jsonb_agg(t.external_id order by l.position) as names
       from links l join entities t on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
       where l.organization_id = $1 and l.source_id = e.id group by l.attribute_id
     ) n join jsonb_to_recordset($${n}) as a(i integer, k text, m boolean) on a.i = n.attribute_id
   ), '{}') else e.attributes end as attribute_values`

const moment = (column: string) => `to_char(e.${column}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column}`
const state = `case when e.active then 'active' else 'placeholder' end as state, e.version,
   ${moment('created_at')}, ${moment('updated_at')}`

const shown = {
  person: (n: number) => `e.id, e.external_id, e.first_name, e.last_name, e.email, e.mobile_prefix, e.mobile_number,
     e.date_of_birth, e.language, e.email_consent, e.sms_consent, e.push_notification_consent, ${consents(n)},
     ${attribute_values(n)}, ${state}`,
  record: (
    n: number,
  ) => `left(replace(e.id::text, '-', ''), 24) as record_id, e.external_id, $${n + 1}::text as stack_key,
     ${attribute_values(n)}, ${state}`,
}

const schema_version = '(select h.schema_version from change_heads h where h.organization_id = $1) as schema_version'

const page = (kind: 'person' | 'record', beyond: string, order: string) =>
  `select string_agg(x.shown, ',') filter (where x.n < $4) as items, count(*) = $4 as has_more, ${schema_version}
   from (
     select row_number() over () as n, row_to_json(p)::text as shown from (
       select ${shown[kind](5)} from entities e
       where e.organization_id = $1 and e.stack_id = $2 and e.id ${beyond} $3 order by e.id ${order} limit $4
     ) p
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
  `select e.${column} as identifier, e.version, (select row_to_json(p)::text from (select ${shown[kind](4)}) p) as json,
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

const part = (kind: 'person' | 'record') =>
  `select string_agg(x.line, E'\\n') || E'\\n' as lines, (array_agg(x.id))[count(*)] as last from (
     select e.id, (select row_to_json(p)::text from (select ${shown[kind](5)}) p) as line
     from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id > $3 order by e.id limit $4
   ) x`

/** $2: stack, $3: beyond this id, $4: how many. A part of all there is, as lines of JSON in order of id, by kind. */
export const read_shown_part = {
  person: statement('read_people_part', part('person')),
  record: statement('read_records_part', part('record')),
}
