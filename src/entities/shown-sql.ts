import { statement } from '../db/db.ts'

// A page is made into JSON by the database, and reaches Node as one text: row by row a page of 50 cost Node 425 µs, a
// quarter of it for the garbage. What a read shows beyond the row comes as parameters, from the definitions in memory.

/** $6: [{n: order, k: key of the answer, or null where none counts, i: consent type, h: channel, d: shown without one}], $7: all d. */
const consents = `case when e.answers = '{}' then $7 else (
     select json_agg(
       case when e.answers ? c.k then json_build_object('consent_type_id', c.i, 'channel', c.h,
         'state', e.answers->c.k->'state', 'source', 'answer', 'answered_at', e.answers->c.k->'answered_at') else c.d end
       order by c.n)
     from jsonb_to_recordset($6) as c(n integer, k text, i integer, h text, d json)
   ) end as consents`

/** $5: relationship attributes: [{i: id, k: key, m: whether many}]. */
const attribute_values = `case when l.shown is null then e.attributes else e.attributes || l.shown end as attribute_values`
const linked = `left join lateral (
     select jsonb_object_agg(a.k, case when a.m then n.names else n.names->0 end order by a.i) as shown
     from (
       select l.attribute_id, jsonb_agg(t.external_id order by l.position) as names
       from links l join entities t on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
       where l.organization_id = $1 and l.source_id = e.id group by l.attribute_id
     ) n join jsonb_to_recordset($5) as a(i integer, k text, m boolean) on a.i = n.attribute_id
   ) l on true`

const moment = (column: string) => `to_char(e.${column}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column}`
const state = `case when e.active then 'active' else 'placeholder' end as state, e.version,
   ${moment('created_at')}, ${moment('updated_at')}`

const person = `e.id, e.external_id, e.first_name, e.last_name, e.email, e.mobile_prefix, e.mobile_number, e.date_of_birth,
   e.language, e.email_consent, e.sms_consent, e.push_notification_consent, ${consents}, ${attribute_values}, ${state}`
/** $6: the key of the stack. */
const record = `left(replace(e.id::text, '-', ''), 24) as record_id, e.external_id, $6::text as stack_key,
   ${attribute_values}, ${state}`

const page = (shown: string, beyond: string, order: string) =>
  `select string_agg(x.shown, ',') filter (where x.n < $4) as items, count(*) = $4 as has_more,
     (select h.schema_version from change_heads h where h.organization_id = $1) as schema_version
   from (
     select row_number() over () as n, row_to_json(p)::text as shown from (
       select ${shown} from entities e ${linked}
       where e.organization_id = $1 and e.stack_id = $2 and e.id ${beyond} $3 order by e.id ${order} limit $4
     ) p
   ) x`

/** $2: stack, $3: beyond this id, $4: how many and one more. A page as JSON texts, by kind and direction. */
export const read_shown_page = {
  person: {
    asc: statement('read_people_ascending', page(person, '>', 'asc')),
    desc: statement('read_people_descending', page(person, '<', 'desc')),
  },
  record: {
    asc: statement('read_records_ascending', page(record, '>', 'asc')),
    desc: statement('read_records_descending', page(record, '<', 'desc')),
  },
}

const part = (shown: string) =>
  `select string_agg(x.line, E'\\n') || E'\\n' as lines, (array_agg(x.id))[count(*)] as last from (
     select e.id, row_to_json(p)::text as line
     from entities e ${linked}, lateral (select ${shown}) p
     where e.organization_id = $1 and e.stack_id = $2 and e.id > $3 order by e.id limit $4
   ) x`

/** $2: stack, $3: beyond this id, $4: how many. A part of all there is, as lines of JSON in order of id, by kind. */
export const read_shown_part = {
  person: statement('read_people_part', part(person)),
  record: statement('read_records_part', part(record)),
}
