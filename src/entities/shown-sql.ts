import { statement } from '../db/db.ts'
import { profile_flags, profile_texts } from './sql.ts'

// What is read leaves the database as the text of its row, which PostgreSQL writes in 2.8 µs, and `print.ts` makes it into
// JSON in 1 µs. Made into JSON here, by concatenation, a row took 7.5 µs, by row_to_json a quarter more.

// Most have no links: one look at the index says so, and nothing of the rest is set up.
const links = `case when exists (select from links l where l.organization_id = $1 and l.source_id = e.id) then (
     select jsonb_agg(jsonb_build_array(l.attribute_id, t.external_id) order by l.attribute_id, l.position)
     from links l join entities t on t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = l.target_id
     where l.organization_id = $1 and l.source_id = e.id
   ) end`

const columns = [...profile_texts, ...profile_flags].map(column => `e.${column}`).join(', ')

/**
 * An entity e as one text: its attributes, a line feed, its row `(…)`. Among the attributes, which lie outside the row so that
 * their quotes are not doubled, there is no line feed. $1: organization.
 */
export const row_text = `e.attributes::text || E'\\n' || row(e.id, e.external_id, ${columns}, e.answers, ${links},
     e.active, e.version, e.created_at, e.updated_at)::text`

/** The version of the definitions at the moment of the read. */
export const schema_version =
  '(select h.schema_version from change_heads h where h.organization_id = $1) as schema_version'

const page = (beyond: string, order: string) =>
  `select string_agg(x.row, E'\\n' order by x.id ${order}) as rows, ${schema_version}
   from (
     select e.id, ${row_text} as row from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id ${beyond} $3 order by e.id ${order} limit $4
   ) x`

/** $2: stack, $3: beyond this id, $4: how many. Rows in order of id. */
export const read_page = {
  asc: statement('read_page_ascending', page('>', 'asc')),
  desc: statement('read_page_descending', page('<', 'desc')),
}

const those = (column: string, type: string) =>
  `select e.${column} as identifier, e.version, ${row_text} as row, ${schema_version}
   from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = any($3::${type}[])`

/** $2: stack, $3: identifiers. Each row beside the identifier it was asked by and its version. */
export const read_those = {
  id: statement('read_by_id', those('id', 'uuid')),
  external_id: statement('read_by_external_id', those('external_id', 'text')),
}

// What is left out is passed over in the index. `offset` of the rows themselves took 1.3 µs more for each row that is read.
const start = `case when $4::integer = 0 then $3::uuid else (
     select k.id from entities k where k.organization_id = $1 and k.stack_id = $2 and k.id > $3 order by k.id
     offset $4 - 1 limit 1
   ) end`

/** $2: stack, $3: beyond this id, $4: how many more to leave out, $5: how many. A part of all there is, in order of id. */
export const read_part = statement(
  'read_part',
  `select string_agg(x.row, E'\\n' order by x.id) as rows from (
     select e.id, ${row_text} as row from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id > ${start} order by e.id limit $5
   ) x`,
)

/** The head of every other read: entities e, each as its row and the schema version of the same moment. $1: organization. */
export const read_rows = `select e.id, ${row_text} as row, ${schema_version} from entities e`
