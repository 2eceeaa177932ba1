import { statement } from '../db/db.ts'
import { profile_flags, profile_texts } from './sql.ts'

// What is read leaves the database as the text of its row, which PostgreSQL writes in 2.8 µs, and `print.ts` makes it into
// JSON in 1 µs. Made into JSON here, by concatenation, a row took 7.5 µs, by row_to_json a quarter more.

// Most have no links: one look at the index says so, and nothing of the rest is set up.
const links = (organization: string) =>
  `case when exists (select from links l where l.organization_id = ${organization} and l.source_id = e.id) then (
     select jsonb_agg(jsonb_build_array(l.attribute_id, t.external_id) order by l.attribute_id, l.position)
     from links l join entities t on t.organization_id = ${organization} and t.stack_id = l.target_stack_id and t.id = l.target_id
     where l.organization_id = ${organization} and l.source_id = e.id
   ) end`

const columns = [...profile_texts, ...profile_flags].map(column => `e.${column}`).join(', ')

/**
 * An entity e as one text: its attributes, a line feed, its row `(…)`. Among the attributes, which lie outside the row so that
 * their quotes are not doubled, there is no line feed.
 */
const rowText = (organization: string) =>
  `e.attributes::text || E'\\n' || row(e.id, e.external_id, ${columns}, e.answers, ${links(organization)},
     e.active, e.version, e.created_at, e.updated_at)::text`

/** $1: organization. */
export const row_text = rowText('$1')

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

/**
 * COPY takes no parameters: its transaction holds them. It goes on for as long as its client reads, and by the index.
 * $1: organization, $2: stack, $3: beyond this id.
 */
export const prepare_copy = statement(
  'prepare_copy',
  `select set_config('kith.organization', $1::integer::text, true), set_config('kith.stack', $2::integer::text, true),
     set_config('kith.beyond', $3::uuid::text, true), set_config('statement_timeout', '0', true),
     set_config('enable_sort', 'off', true)`,
)

// By parts of 250, three at once on three connections, each as one text put together, it took half as long again.
/** All there is beyond an id, in order of id, each as one field. */
export const copy_all = statement(
  'copy_all',
  `copy (select ${rowText('e.organization_id')} from entities e
   where e.organization_id = current_setting('kith.organization')::integer
     and e.stack_id = current_setting('kith.stack')::integer and e.id > current_setting('kith.beyond')::uuid
   order by e.id) to stdout (format binary)`,
)

/** The head of every other read: entities e, each as its row and the schema version of the same moment. $1: organization. */
export const read_rows = `select e.id, ${row_text} as row, ${schema_version} from entities e`
