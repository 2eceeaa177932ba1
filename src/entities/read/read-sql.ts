import { type AddressKey, peopleWithKey } from '../../changes/people-sql.ts'
import { type Statement, statement } from '../../db/db.ts'
import { phoneMember, profileFlags, readTexts } from '../../values/profile-fields.ts'

// Reads return each row as text. PostgreSQL prints it in 2.8 µs, and `entity-json.ts` converts it to JSON in 1 µs.
// Building the JSON in PostgreSQL took 7.5 µs per row by concatenation, and a quarter more with row_to_json.

/**
 * Selects the links of an entity to read, and whether the ids of all targets are read with them. Both are SQL
 * conditions.
 */
type LinksToRead = { condition?: string; isById?: string | undefined }

/**
 * The links of an entity e as JSON, unordered: the attribute, the position, the name of each target, and its id if it
 * has no name or if all are read by id. A link may dangle. The fence (`offset 0`) leaves the planner only the look-up
 * of each target, so it plans a filter's statement in three quarters of the time.
 */
const linksOf = (organization: string, { condition = '', isById }: LinksToRead = {}) =>
  `(
     select json_agg(json_build_array(l.attribute_id, l.position, t.external_id,
       case when t.external_id is null${isById ? ` or ${isById}` : ''} then l.target_id end))
     from links l cross join lateral (
       select t.external_id from entities t
       where t.organization_id = ${organization} and t.stack_id = l.target_stack_id and t.id = l.target_id offset 0
     ) t
     where l.organization_id = ${organization} and l.source_id = e.id ${condition}
   )`

/**
 * The parts of an entity e that a read returns, as SQL: its attributes, its links, and each other member or null in its
 * place.
 */
type RowParts = { attributes: string; links: string; member: (name: string, column: string) => string }

/**
 * The text of an entity e: its attributes, a line feed, its row `(…)`. The attributes are outside of the row, so their
 * quotes are not doubled. They contain no line feed.
 */
function rowTextFrom({ attributes, links, member }: RowParts): string {
  const columnOf = (name: string) => (name === phoneMember ? 'mobile_key' : name)
  const profile = [...readTexts, ...profileFlags].map(name => member(name, `e.${columnOf(name)}`)).join(', ')
  return `${attributes} || E'\\n' || row(e.id, ${member('external_id', 'e.external_id')}, ${profile}, ${member('consents', 'e.answers')}, ${links},
     ${member('state', 'e.active')}, ${member('version', 'e.version')}, ${member('created_at', 'e.created_at')},
     ${member('updated_at', 'e.updated_at')})::text`
}

/** The text of a whole entity e, whose relationships are read by internal identifier if a condition holds. */
const rowTextOf = (organization: string, isById?: string) =>
  rowTextFrom({
    attributes: 'e.attributes::text',
    links: linksOf(organization, { isById }),
    member: (_, column) => column,
  })

const members = [
  ...['id', 'record_id', 'external_id', 'stack_key', ...readTexts, ...profileFlags, 'consents', 'attribute_values'],
  ...['state', 'version', 'created_at', 'updated_at'],
]

/** The bit of each member of a read in the mask of a projection. */
export const memberBits: ReadonlyMap<string, number> = new Map(members.map((name, index) => [name, 2 ** index]))

/** The bit of the mask with which relationships are read by internal identifier. */
export const linksByIdBit: number = 2 ** members.length

/**
 * Up to this many values are picked one by one. For more, `jsonb_object_agg` is used, which takes 3 µs more per row.
 */
const maxPickedValues = 8

/**
 * Some keys of the attributes, as an array in SQL in the format of {@link arrayOfKeys}. Their number is part of the
 * statement.
 */
type NamedKeys = { array: string; count: number }

/**
 * The keys. If their values are picked one by one, the start of each JSON member follows, because PostgreSQL takes 1 µs
 * a row to print it.
 */
export const arrayOfKeys = (keys: readonly string[]): string[] =>
  keys.length > maxPickedValues ? [...keys] : [...keys, ...keys.map(key => `${JSON.stringify(key)}:`)]

/**
 * The values of some keys as the text of a JSON object, in the order of the keys. Attributes that may be compressed are
 * decompressed once.
 */
function attributesOf({ array, count }: NamedKeys): string {
  if (count > maxPickedValues)
    return `coalesce((
     select jsonb_object_agg(k.key, a.v -> k.key)::text
     from (select e.attributes || '{}'::jsonb as v offset 0) a cross join unnest(${array}) k(key) where a.v ? k.key
   ), '{}')`
  const member = (stored: string, index: number) =>
    `(${array})[${count + index + 1}] || (${stored} -> (${array})[${index + 1}])::text`
  if (count === 1) return `coalesce('{' || ${member('e.attributes', 0)} || '}', '{}')`
  const members = Array.from({ length: count }, (_, index) => member('a.v', index))
  return `(select '{' || concat_ws(',', ${members.join(', ')}) || '}' from (select e.attributes || '{}'::jsonb as v offset 0) a)`
}

/**
 * The members of a read that a statement names. `relationships` is an array in SQL, present if only some of
 * `attribute_values` are read.
 */
type NamedMembers = { mask: number; keys?: NamedKeys | undefined; relationships?: string | undefined }

/** The row of an entity e as {@link rowWithin} returns it, with only the named members. */
export function rowOfMembers(maxBytes: string, members: NamedMembers): string {
  const text = rowTextOfMembers(members)
  const isWhole = (members.mask & memberBits.get('attribute_values')!) !== 0
  return isWhole ? rowWithin(maxBytes, text) : `${text} as row`
}

/** The text of an entity e with only the named members. $1: organization. */
export function rowTextOfMembers({ mask, keys, relationships }: NamedMembers): string {
  const isNamed = (name: string) => (mask & memberBits.get(name)!) !== 0
  const isWhole = isNamed('attribute_values')
  const isById = (mask & linksByIdBit) !== 0 ? 'true' : undefined
  return rowTextFrom({
    attributes: isWhole ? 'e.attributes::text' : keys ? attributesOf(keys) : `'{}'`,
    links: isWhole
      ? linksOf('$1', { isById })
      : relationships
        ? linksOf('$1', { condition: `and l.attribute_id = any(${relationships}::integer[])`, isById })
        : 'null',
    member: (name, column) => (isNamed(name) ? column : 'null'),
  })
}

/** The text of an entity e. $1: organization. */
export const rowText = rowTextOf('$1')

/** The version of the definitions at the time of the read. */
export const schema_version =
  '(select h.schema_version from change_heads h where h.organization_id = $1) as schema_version'

/**
 * The row text of an entity e, or null if its stored attributes exceed the limit: those are neither decompressed nor
 * printed. Compressed attributes are longer as text, so {@link withinLimit} checks the text again.
 */
export const rowWithin = (maxBytes: string, text = rowText): string =>
  `case when pg_column_size(e.attributes) <= ${maxBytes} then ${text} end as row`

const withinLimit = (maxBytes: string) => `case when octet_length(x.row) <= ${maxBytes} then x.row end`

const pageByKey = (column: AddressKey) =>
  `select string_agg(coalesce(${withinLimit('$5')}, x.id::text), E'\\n' order by x.id) as rows, ${schema_version}
   from (
     select e.id, ${rowWithin('$5')} from (${peopleWithKey(column, '$2', '$4', '$3')}) k cross join lateral (
       select e.* from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = k.id offset 0
     ) e order by e.id limit $4
   ) x`

/**
 * $2: key, $3: after this id, $4: limit, $5: maximum bytes of a row. Reads the people with a key, as {@link readPage}
 * does, and whether the background fill may have left some out.
 */
export const readPageByKey = {
  email: statement('read_page_by_email', pageByKey('email_key')),
  mobile: statement('read_page_by_mobile', pageByKey('mobile_key')),
}

const rowsBy = (column: string, type: string) =>
  `select x.identifier, x.version, ${withinLimit('$4')} as row, ${schema_version} from (
     select e.${column} as identifier, e.version, ${rowWithin('$4', rowTextOf('$1', '$5'))}
     from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = any($3::${type}[]) offset 0
   ) x`

/**
 * $2: stack, $3: identifiers, $4: maximum bytes of a row, $5: whether links are shown by internal identifier. A larger
 * row is null.
 */
export const readByIdentifier = {
  id: statement('read_by_id', rowsBy('id', 'uuid')),
  external_id: statement('read_by_external_id', rowsBy('external_id', 'text')),
}

/** The person that an identifier a.identifier leads to: its own, or a further one. */
const personBy = {
  id: `select e.id from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = a.identifier
     union all
     select m.person_id from merges m
     where m.organization_id = $1 and m.merged_id = a.identifier and m.unmerged_sequence is null`,
  external_id: `select e.id from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.external_id = a.identifier
     union all
     select s.person_id from aliases s where s.organization_id = $1 and s.external_id = a.identifier`,
}

const peopleBy = (person: string, type: string) =>
  `select x.identifier, x.version, ${withinLimit('$3')} as row, ${schema_version} from (
     select a.identifier, e.version, ${rowWithin('$3', rowTextOf('$1', '$4'))}
     from unnest($2::${type}[]) as a(identifier) cross join lateral (${person} offset 0) p cross join lateral (
       select e.* from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = p.id offset 0
     ) e offset 0
   ) x`

/**
 * $2: identifiers, $3: maximum bytes of a row, $4: whether links are shown by internal identifier. Reads the people
 * that the identifiers lead to, by their own identifier or a further one: an alias, or the internal identifier of a
 * person who was merged into them.
 */
export const readPeopleByAnyIdentifier = {
  id: statement('read_people_by_any_id', peopleBy(personBy.id, 'uuid')),
  external_id: statement('read_people_by_any_external_id', peopleBy(personBy.external_id, 'text')),
}

const recordBy = (column: string) =>
  `select e.id from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = a.identifier`

const soughtBy = (find: string, type: string): Sought => ({
  ids: '(select s.ids from sought s)',
  tables: `sought(ids) as materialized (
     select array(
       select (select f.id from (${find}) f limit 1) from unnest($3::${type}[]) with ordinality a(identifier, place) order by a.place
     )
   ),`,
})

/**
 * The entities that the identifiers in $3 lead to, as {@link portion} reads them. Without an entity, the id is null.
 */
export const soughtByIdentifier = {
  people: { id: soughtBy(personBy.id, 'uuid'), external_id: soughtBy(personBy.external_id, 'text') },
  records: { id: soughtBy(recordBy('id'), 'uuid'), external_id: soughtBy(recordBy('external_id'), 'text') },
}

const findPersonBy = (person: string, type: string) =>
  `select e.id from (select $2::${type} as identifier) a cross join lateral (${person} offset 0) p cross join lateral (
     select e.id from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = p.id offset 0
   ) e`

/**
 * $2: an identifier. Returns the person that it leads to, as {@link readPeopleByAnyIdentifier} does. Returns no row for
 * a deleted or erased person.
 */
export const findPersonByAnyIdentifier = {
  id: statement('find_person_by_any_id', findPersonBy(personBy.id, 'uuid')),
  external_id: statement('find_person_by_any_external_id', findPersonBy(personBy.external_id, 'text')),
}

/** A COPY lasts as long as its client reads, so it needs a transaction without a timeout. */
export const waitForReaderSql = statement('', 'set local statement_timeout = 0')
/**
 * Lets the transaction wait for a client that reads slowly. The stream ends if the client reads nothing for too long.
 */
export const waitForClientSql = statement('', `select set_config('idle_in_transaction_session_timeout', '0', true)`)
/** Makes the planner use the order of the index. */
export const readInOrderSql = statement('', 'set local enable_sort = off')

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

// Portions of 250 rows, three at a time on three connections, each aggregated into one text, took 1.5 times as long.
/**
 * Copies all entities after an id, in order of id, each as one field. COPY takes no parameters, so the SQL text
 * contains the values, which are checked. Throws if a value has the wrong type.
 */
export function copyAllSql(organization_id: number, stack_id: number, after_id: string, isById = false): Statement {
  if (!Number.isInteger(organization_id) || !Number.isInteger(stack_id) || !uuid.test(after_id))
    throw new Error('the values of a COPY must be two integers and a UUID')
  return statement(
    'copy_all',
    `copy (select ${rowTextOf('e.organization_id', isById ? 'true' : undefined)} from entities e
   where e.organization_id = ${organization_id} and e.stack_id = ${stack_id} and e.id > '${after_id}'
   order by e.id) to stdout (format binary)`,
  )
}

/** The ids to read, as an array in SQL, and the tables that it names. By default they are $3. */
type Sought = { ids: string; tables: string }

const given: Sought = { ids: '($3::uuid[])', tables: '' }

/** The statement {@link readPortionSql} with another text of a row, and with other ids. */
export const portion = (row: string, { ids, tables }: Sought = given): string =>
  `with recursive ${tables} walk(n, row, octets) as (
     select 0, null::text, 0::bigint
     union all
     select w.n + 1, r.row, w.octets + coalesce(octet_length(r.row), 0)
     from walk w left join lateral (
       select ${row} as row from entities e
       where e.organization_id = $1 and e.stack_id = $2 and e.id = ${ids}[w.n + 1] offset 0
     ) r on true
     where w.n < cardinality(${ids}) and w.octets < $4
   )
   select w.row, ${ids}[w.n] as id, ${schema_version} from walk w where w.n > 0 order by w.n`

/**
 * $2: stack, $3: ids, $4: bytes. Returns the rows of the first ids until their sizes reach the bytes; the last row may
 * exceed them. A row is null if its entity no longer exists. Later entities are not looked up.
 */
export const readPortionSql = statement('read_portion', portion(rowText))

const findBy = (column: string) =>
  `select e.id from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = $3`

/** $2: stack, $3: identifier. Returns the internal identifier of the entity. */
export const findEntitySql = {
  id: statement('find_by_id', findBy('id')),
  external_id: statement('find_by_external_id', findBy('external_id')),
}

// A step reads 32 rows, so the reading ends at most 32 rows past the limit.
const rowsOfStep = 32

/**
 * $2: ids of entities, $3: relationships, $4: maximum number of links, $5: maximum bytes of rows, $6: whether their
 * relationships are read by internal identifier. Returns the links as arrays of the place of the source in $2, the
 * attribute and the target, and the rows of the targets, each once. Without rows, there are more links than the
 * maximum. If `octets` is above the maximum, rows are missing.
 */
export const readIncludedSql = statement(
  'read_included',
  `with recursive linked as materialized (
     select s.n, l.attribute_id, l.position, l.target_stack_id, l.target_id
     from unnest($2::uuid[]) with ordinality s(id, n) cross join lateral (
       select l.attribute_id, l.position, l.target_stack_id, l.target_id from links l
       where l.organization_id = $1 and l.source_id = s.id and l.attribute_id = any($3::integer[]) offset 0
     ) l limit $4::integer + 1
   ), targets as materialized (
     select coalesce(array_agg(d.target_stack_id), '{}') as stacks, coalesce(array_agg(d.target_id), '{}') as ids
     from (select distinct l.target_stack_id, l.target_id from linked l) d
     where (select count(*) from linked) <= $4
   ), walk(n, rows, octets) as (
     select 0, null::text, 0::bigint
     union all
     select w.n + ${rowsOfStep}, r.rows, w.octets + coalesce(r.octets, 0)
     from walk w cross join targets t cross join lateral (
       select string_agg(x.row, E'\\n') as rows, sum(octet_length(x.row))::bigint as octets from (
         select ${rowTextOf('$1', '$6')} as row
         from unnest(t.stacks[w.n + 1 : w.n + ${rowsOfStep}], t.ids[w.n + 1 : w.n + ${rowsOfStep}]) as p(stack_id, id)
         cross join lateral (
           select e.* from entities e where e.organization_id = $1 and e.stack_id = p.stack_id and e.id = p.id offset 0
         ) e offset 0
       ) x
     ) r
     where w.n < cardinality(t.ids) and w.octets <= $5
   )
   select (
       select coalesce(jsonb_agg(jsonb_build_array(l.n, l.attribute_id, l.target_id) order by l.n, l.attribute_id, l.position), '[]')
       from linked l
     ) as links,
     (select string_agg(w.rows, E'\\n') from walk w) as rows, (select max(w.octets) from walk w) as octets, ${schema_version}`,
)

const cut = (text: string) => `left(${text}, $9::integer)`
const textOf = (value: string) =>
  `case when jsonb_typeof(${value}) in ('string', 'number', 'boolean') then ${cut(`${value} #>> '{}'`)} end`

/** The path reads only the first elements. Reading all 2,000 elements of 52 keys of ten records took half a second. */
const firstElements = `jsonb_path_query_array(a.v -> k.key, '$[0 to $last]', jsonb_build_object('last', $9::integer - 1))`

const valuesOf = `(
         select jsonb_object_agg(k.key, case when jsonb_typeof(a.v -> k.key) = 'array' then (
             select jsonb_agg(${textOf('x.element')} order by x.n)
             from jsonb_array_elements(${firstElements}) with ordinality x(element, n)
           ) else to_jsonb(${textOf('(a.v -> k.key)')}) end)
         from (select e.attributes || '{}'::jsonb as v offset 0) a
         cross join unnest($6::integer[], $7::text[]) k(stack_id, key) where k.stack_id = e.stack_id and a.v ? k.key
       )`

/**
 * Reads the values that the labels of entities and of the targets of their links need. $2: stack of the entities, $3:
 * their ids, $4: relationships whose targets are labeled or named, $5: relationships that the labels of these targets
 * name, $6 and $7: pairs of a stack and a key of an attribute, $8: maximum number of links of each step, $9: maximum
 * number of characters of a text and of elements of a list. Returns the links as arrays of source, attribute and
 * target, in order. Returns the entities as arrays of stack, id, external identifier, the fields of a person, and the
 * values as texts.
 */
export const readLabelsSql = statement(
  'read_labels',
  `with linked as materialized (
     select s.id as source_id, l.attribute_id, l.position, l.target_stack_id, l.target_id
     from unnest($3::uuid[]) s(id) cross join lateral (
       select l.attribute_id, l.position, l.target_stack_id, l.target_id from links l
       where l.organization_id = $1 and l.source_id = s.id and l.attribute_id = any($4::integer[]) offset 0
     ) l limit $8::integer
   ), hops as materialized (
     select s.target_id as source_id, l.attribute_id, l.position, l.target_stack_id, l.target_id
     from (select distinct d.target_id from linked d where cardinality($5::integer[]) > 0) s cross join lateral (
       select l.attribute_id, l.position, l.target_stack_id, l.target_id from links l
       where l.organization_id = $1 and l.source_id = s.target_id and l.attribute_id = any($5::integer[]) offset 0
     ) l limit $8::integer
   ), steps as (
     select * from linked union select * from hops
   ), named as (
     select $2::integer as stack_id, s.id from unnest($3::uuid[]) s(id)
     union select s.target_stack_id, s.target_id from steps s
   )
   select (
       select coalesce(jsonb_agg(jsonb_build_array(s.source_id, s.attribute_id, s.target_id)
         order by s.source_id, s.attribute_id, s.position), '[]') from steps s
     ) as links, (
       select coalesce(jsonb_agg(jsonb_build_array(e.stack_id, e.id, e.external_id, ${cut('e.first_name')},
         ${cut('e.last_name')}, ${cut('e.email')}, ${cut('e.mobile_prefix')}, ${cut('e.mobile_number')},
         case when e.stack_id = any($6::integer[]) then ${valuesOf} end)), '[]')
       from named n cross join lateral (
         select e.* from entities e where e.organization_id = $1 and e.stack_id = n.stack_id and e.id = n.id offset 0
       ) e
     ) as entities, ${schema_version}`,
)
