import { statement } from '../db/db.ts'
import { profileFlags, profileTexts } from './sql.ts'

// What is read leaves the database as the text of its row, which PostgreSQL writes in 2.8 µs, and `print.ts` makes it into
// JSON in 1 µs. Made into JSON here, by concatenation, a row took 7.5 µs, by row_to_json a quarter more.

// Most have no links: one look at the index says so, and nothing of the rest is set up.
const links = (organization: string) =>
  `case when exists (select from links l where l.organization_id = ${organization} and l.source_id = e.id) then (
     select jsonb_agg(jsonb_build_array(l.attribute_id, t.external_id) order by l.attribute_id, l.position)
     from links l join entities t on t.organization_id = ${organization} and t.stack_id = l.target_stack_id and t.id = l.target_id
     where l.organization_id = ${organization} and l.source_id = e.id
   ) end`

const columns = [...profileTexts, ...profileFlags].map(column => `e.${column}`).join(', ')

/**
 * An entity e as one text: its attributes, a line feed, its row `(…)`. Among the attributes, which lie outside the row so that
 * their quotes are not doubled, there is no line feed.
 */
const rowTextOf = (organization: string) =>
  `e.attributes::text || E'\\n' || row(e.id, e.external_id, ${columns}, e.answers, ${links(organization)},
     e.active, e.version, e.created_at, e.updated_at)::text`

/** $1: organization. */
export const rowText = rowTextOf('$1')

/** The version of the definitions at the moment of the read. */
export const schema_version =
  '(select h.schema_version from change_heads h where h.organization_id = $1) as schema_version'

/**
 * The row of an entity e, or null where its attributes are stored in more than so many bytes: those are neither unpacked nor written.
 * Attributes that compress well are longer as a text, so that {@link kept} looks again.
 */
const rowWithin = (octets: string) => `case when pg_column_size(e.attributes) <= ${octets} then ${rowText} end as row`

const kept = (octets: string) => `case when octet_length(x.row) <= ${octets} then x.row end`

const page = (beyond: string, order: string) =>
  `select string_agg(coalesce(${kept('$5')}, x.id::text), E'\\n' order by x.id ${order}) as rows, ${schema_version}
   from (
     select e.id, ${rowWithin('$5')} from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id ${beyond} $3 order by e.id ${order} limit $4
   ) x`

/** $2: stack, $3: beyond this id, $4: how many, $5: octets of a row. Rows in order of id; of a larger one its id alone. */
export const readPage = {
  asc: statement('read_page_ascending', page('>', 'asc')),
  desc: statement('read_page_descending', page('<', 'desc')),
}

const those = (column: string, type: string) =>
  `select x.identifier, x.version, ${kept('$4')} as row, ${schema_version} from (
     select e.${column} as identifier, e.version, ${rowWithin('$4')}
     from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = any($3::${type}[]) offset 0
   ) x`

/** $2: stack, $3: identifiers, $4: octets of a row. Each row, null where it is larger, beside its identifier and version. */
export const readThose = {
  id: statement('read_by_id', those('id', 'uuid')),
  external_id: statement('read_by_external_id', those('external_id', 'text')),
}

/**
 * COPY takes no parameters: its transaction holds them. It goes on for as long as its client reads, and by the index.
 * $1: organization, $2: stack, $3: beyond this id.
 */
export const prepareCopySql = statement(
  'prepare_copy',
  `select set_config('kith.organization', $1::integer::text, true), set_config('kith.stack', $2::integer::text, true),
     set_config('kith.beyond', $3::uuid::text, true), set_config('statement_timeout', '0', true),
     set_config('enable_sort', 'off', true)`,
)

// By parts of 250, three at once on three connections, each as one text put together, it took half as long again.
/** All there is beyond an id, in order of id, each as one field. */
export const copyAllSql = statement(
  'copy_all',
  `copy (select ${rowTextOf('e.organization_id')} from entities e
   where e.organization_id = current_setting('kith.organization')::integer
     and e.stack_id = current_setting('kith.stack')::integer and e.id > current_setting('kith.beyond')::uuid
   order by e.id) to stdout (format binary)`,
)

/**
 * Every other read: the entities e of a selection, each as its id and its row, null where it has more octets, beside the schema
 * version of the same moment. $1: organization, $2: octets of a row.
 */
export const readRows = (selection: string): string =>
  `select x.id, ${kept('$2')} as row, ${schema_version}
   from (select e.id, ${rowWithin('$2')} from entities e ${selection} offset 0) x`

/**
 * $2: stack, $3: ids, $4: octets. The rows of the first of these ids, null where there is none any more, until they have so many
 * octets together: one row goes beyond. An entity is looked up only when those before it have left room.
 */
export const readPortionSql = statement(
  'read_portion',
  `with recursive walk(n, row, octets) as (
     select 0, null::text, 0::bigint
     union all
     select w.n + 1, r.row, w.octets + coalesce(octet_length(r.row), 0)
     from walk w left join lateral (
       select ${rowText} as row from entities e
       where e.organization_id = $1 and e.stack_id = $2 and e.id = ($3::uuid[])[w.n + 1] offset 0
     ) r on true
     where w.n < cardinality($3::uuid[]) and w.octets < $4
   )
   select w.row, ${schema_version} from walk w where w.n > 0 order by w.n`,
)
