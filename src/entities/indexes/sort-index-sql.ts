import { statement } from '../../db/db.ts'
import { profileFlags, profileTexts } from '../../values/profile-fields.ts'

/** The number of first characters of a text that a sort term depends on, `prefixCharacters` of index-keys.ts. */
const firstCharacters = 64

/** The sort term of a time column. It equals `termOf` of its text. */
export const timeTerm = (column: string): string =>
  `'i' || lpad((floor(extract(epoch from ${column})) + 1000000000000)::bigint::text, 13, '0')
     || rtrim(to_char(${column} at time zone 'UTC', 'US'), '0')`

/**
 * The part of an attribute's value that its sort term depends on, as JSON. $n: the key. A date and time stays whole,
 * because its beginning would be a text.
 */
export const attributePart = (value: string): string =>
  `case jsonb_typeof(${value})
     when 'string' then case when octet_length(${value}::text) > 4 * ${firstCharacters} and not ${value} #>> '{}' ~ '^\\d{4}-\\d\\d-\\d\\d.\\d\\d:\\d\\d:\\d\\d'
       then to_jsonb(left(${value} #>> '{}', ${firstCharacters})) else ${value} end
     when 'number' then ${value} when 'boolean' then ${value} end`

/** The part of a text column that its sort term depends on. */
export const textPart = (column: string): string => `left(${column}, ${firstCharacters})`

const texts = ['external_id', ...profileTexts]
const times = ['created_at', 'updated_at']

/**
 * The part of the field $4 of a row e that its sort term depends on, as JSON. For a time, it is the term. $5: the key
 * of an attribute.
 */
const sortValue = `case $4::text
     ${texts.map(column => `when '${column}' then to_jsonb(${textPart(`e.${column}`)})`).join('\n     ')}
     ${profileFlags.map(column => `when '${column}' then to_jsonb(e.${column})`).join('\n     ')}
     ${times.map(column => `when '${column}' then to_jsonb(${timeTerm(`e.${column}`)})`).join('\n     ')}
     else ${attributePart('(e.attributes->$5::text)')} end`

/**
 * $2: stack, $3: ids, $4: a column, or `attributes`, $5: the key of an attribute. Returns the values that the sort
 * terms of the entities depend on.
 */
export const readSortValuesSql = statement(
  'read_sort_values',
  `select v.id, v.value from unnest($3::uuid[]) a(id) cross join lateral (
     select e.id, ${sortValue} as value from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.id = a.id offset 0
   ) v`,
)

/**
 * $2: stack, $3: field, $4: the key of its attribute, or null. Needs the head's lock. Creates nothing if the index
 * exists or the attribute is not indexed.
 */
export const createSortIndexSql = statement(
  'create_sort_index',
  `insert into sort_indexes (organization_id, stack_id, field, index_id)
   select h.organization_id, $2, $3, h.schema_version + 1 from change_heads h
   where h.organization_id = $1 and ($4::text is null or exists (
     select from attributes d where d.organization_id = $1 and d.owner_stack_id = $2 and d.key = $4
       and d.state = 'active' and d.indexed and d.cardinality = 'one'
   ))
   on conflict do nothing`,
)

/**
 * $2: stack, $3: field. Increments the schema version if {@link createSortIndexSql} has just created the index, so that
 * every writer maintains it from then on.
 */
export const announceSortIndexSql = statement(
  'announce_sort_index',
  `update change_heads h set schema_version = h.schema_version + 1
   where h.organization_id = $1 and exists (
     select from sort_indexes s
     where s.organization_id = $1 and s.stack_id = $2 and s.field = $3 and s.index_id = h.schema_version + 1
   )`,
)

/** Returns the sort indexes whose backfill is not complete, each with the type of its attribute, if it has one. */
export const readUnfilledSortsSql = statement(
  'read_unfilled_sorts',
  `select s.index_id, s.stack_id, s.field, d.type from sort_indexes s
   left join attributes d on d.organization_id = $1 and d.owner_stack_id = s.stack_id and d.state = 'active'
     and s.field = 'attribute_values.' || d.key
   where s.organization_id = $1 and not s.ready order by s.index_id`,
)

/**
 * $2: [{index_id, column, stack_id, id}]. Deletes the terms of the stored times before a write changes the rows. A set
 * does not read the times of its rows, so PostgreSQL computes these terms.
 */
export const deleteTimeTermsSql = statement(
  'delete_time_terms',
  `delete from terms t where t.organization_id = $1 and t.ctid = any(array(
     select k.ctid
     from jsonb_to_recordset($2::text::jsonb) as v(index_id integer, "column" text, stack_id integer, id uuid)
     cross join lateral (
       select case when v."column" = 'created_at' then ${timeTerm('e.created_at')} else ${timeTerm('e.updated_at')} end as term
       from entities e where e.organization_id = $1 and e.stack_id = v.stack_id and e.id = v.id offset 0
     ) e cross join lateral (
       select k.ctid from terms k
       where k.organization_id = $1 and k.index_id = v.index_id and k.value = e.term and k.entity_id = v.id offset 0
     ) k
   ))`,
)
