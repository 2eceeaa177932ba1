import { copyInto } from '../../db/copy.ts'
import { statement } from '../../db/db.ts'
import { wordColumns } from '../../values/profile-fields.ts'

/**
 * The name of the follower that indexes the words. An erasure locks its row, so that no word of the person comes back.
 */
export const searchFollowerName = 'search'

export const readSearchIndexesSql = statement(
  'read_search_indexes',
  `select s.stack_id, s.keys, s.form, s.after_id, s.indexed, s.total, s.is_ready from search_indexes s
   where s.organization_id = $1 order by s.stack_id`,
)

/** While the lock is held, the follower stores no words. */
export const lockSearchFollowerSql = statement(
  'lock_search_follower',
  `select f.id from followers f where f.organization_id = $1 and f.name = '${searchFollowerName}' for update`,
)

/**
 * $2: stack, $3: keys of the searchable attributes, $4: the form of the words. Restarts the fill of the index. Its
 * documents stay until the fill reaches them.
 */
export const beginSearchIndexSql = statement(
  'begin_search_index',
  `insert into search_indexes (organization_id, stack_id, keys, form, after_id, indexed, total, is_ready)
   select h.organization_id, $2, $3::text[], $4, '00000000-0000-0000-0000-000000000000', 0, (
     select count(*) from entities e where e.organization_id = $1 and e.stack_id = $2
   ), false from change_heads h
   where h.organization_id = $1
   on conflict (organization_id, stack_id) do update set keys = excluded.keys, form = excluded.form, after_id = excluded.after_id,
     indexed = 0, total = excluded.total, is_ready = false
   returning total`,
)

/** $2: stack, $3: last filled id, $4: number of filled entities, $5: whether the fill is complete. */
export const advanceSearchIndexSql = statement(
  'advance_search_index',
  `update search_indexes set after_id = coalesce($3, after_id), indexed = indexed + $4, total = greatest(total, indexed + $4),
     is_ready = $5
   where organization_id = $1 and stack_id = $2`,
)

/**
 * $2: after this number, $3: up to this number, $4: fields and $5: keys of attributes with words. Returns the entities
 * whose words may have changed, and without $4 all changed entities. A change without values added or removed an alias.
 * A merge and its undoing are logged with the merged person, and move aliases of the survivor.
 */
export const listChangedEntitiesSql = statement(
  'list_changed_entities',
  `with changed as materialized (
     select c.stack_id, c.entity_id as id, c.operation from changes c
     where c.organization_id = $1 and c.sequence > $2 and c.sequence <= $3 and c.entity_id is not null
       and (c.operation <> 'update' or $4::text[] is null or (c.after = '{}' and c.links is null) or c.after ?| $4::text[] or c.after->'attribute_values' ?| $5::text[])
   )
   select c.stack_id, c.id from changed c
   union
   select 0, p.id from changed c cross join lateral (
     select unnest(array[m.into_id, m.person_id]) as id from merges m where m.organization_id = $1 and m.merged_id = c.id offset 0
   ) p where c.operation in ('merge', 'unmerge')`,
)

/**
 * $2: stack, $3: ids, $4: keys, $5: whether a person may have aliases, and emails and phones by merges. Returns each id
 * with the values of its entity and with its document, where these exist.
 */
export const readSearchSourcesSql = statement(
  'read_search_sources',
  `select v.id, e.*, d.words,
     case when $5 then (
       select array_agg(a.external_id) from aliases a where a.organization_id = $1 and a.person_id = v.id
     ) end as aliases, case when $5 then (
       select array_agg(m.email_key) from merges m
       where m.organization_id = $1 and m.person_id = v.id and m.unmerged_sequence is null and m.email_key is not null
     ) end as emails, case when $5 then (
       select array_agg(m.mobile_key) from merges m
       where m.organization_id = $1 and m.person_id = v.id and m.unmerged_sequence is null and m.mobile_key is not null
     ) end as mobiles
   from unnest($3::uuid[]) as v(id) left join lateral (
     select true as exists, array[${wordColumns.map(column => `e.${column}`).join(', ')}] as texts, e.mobile_key, e.mobile_number, e.external_id,
       case when cardinality($4::text[]) > 0 then (
         select jsonb_agg(e.attributes->k.key) from unnest($4::text[]) as k(key) where e.attributes ? k.key
       ) end as "values"
     from entities e where e.organization_id = $1 and e.stack_id = $2 and e.id = v.id offset 0
   ) e on true left join lateral (
     select d.words from search_documents d
     where d.organization_id = $1 and d.stack_id = $2 and d.entity_id = v.id offset 0
   ) d on true`,
)

/** $2: stack, $3: ids and $4: the words of each, a line for each entity. */
export const storeDocumentsSql = statement(
  'store_search_documents',
  `insert into search_documents (organization_id, stack_id, entity_id, words)
   select h.organization_id, $2, v.id, v.words
   from change_heads h cross join unnest(string_to_array($3, E'\\n')::uuid[], string_to_array($4, E'\\n')) as v(id, words)
   where h.organization_id = $1
   on conflict (organization_id, stack_id, entity_id) do update set words = excluded.words`,
)

/** $2: stack, $3: ids. */
export const deleteDocumentsSql = statement(
  'delete_search_documents',
  `delete from search_documents d where d.organization_id = $1 and d.stack_id = $2 and d.entity_id = any($3::uuid[])`,
)

/**
 * Appends words of entities. A document lists the stored words of its entity, so none of the appended words is stored
 * yet.
 */
export const appendWords = copyInto('append_search_words', 'search_words', [
  'organization_id',
  'stack_id',
  'word',
  'entity_id',
])

/** $2: stack, $3: words and $4: the entity of each, one per line. */
export const deleteWordsSql = statement(
  'delete_search_words',
  `delete from search_words w where w.organization_id = $1 and w.ctid = any(array(
     select k.ctid from unnest(string_to_array($3, E'\\n'), string_to_array($4, E'\\n')::uuid[]) as v(word, id) cross join lateral (
       select k.ctid from search_words k
       where k.organization_id = $1 and k.stack_id = $2 and k.word = v.word and k.entity_id = v.id offset 0
     ) k
   ))`,
)

/** $2: stack, $3: {word: [features]}. Adds the features of the words that have none yet. */
export const insertFeaturesSql = statement(
  'insert_search_features',
  `insert into search_features (organization_id, stack_id, feature, word)
   select h.organization_id, $2, f.feature, v.key
   from change_heads h cross join jsonb_each($3::text::jsonb) as v(key, features)
     cross join lateral jsonb_array_elements_text(v.features) as f(feature)
   where h.organization_id = $1 and not exists (
     select from search_features k
     where k.organization_id = $1 and k.stack_id = $2 and k.feature = v.features->>0 and k.word = v.key offset 0
   )
   on conflict do nothing`,
)

/** $2: stack, $3: {word: [features]}. Deletes the features of the words that no entity has any more. */
export const deleteFeaturesSql = statement(
  'delete_search_features',
  `delete from search_features f where f.organization_id = $1 and f.ctid = any(array(
     select k.ctid
     from jsonb_each($3::text::jsonb) as v(key, features) cross join lateral jsonb_array_elements_text(v.features) as g(feature)
       cross join lateral (
         select k.ctid from search_features k
         where k.organization_id = $1 and k.stack_id = $2 and k.feature = g.feature and k.word = v.key offset 0
       ) k
     where not exists (
       select from search_words w where w.organization_id = $1 and w.stack_id = $2 and w.word = v.key offset 0
     )
   ))`,
)

/** $2: stack, $3: limit. The first documents of a stack whose index is dropped. */
export const listDocumentsSql = statement(
  'list_search_documents',
  `select d.entity_id as id, d.words from search_documents d where d.organization_id = $1 and d.stack_id = $2
   order by d.entity_id limit $3`,
)

/** $2: stack. */
export const dropSearchIndexSql = statement(
  'drop_search_index',
  'delete from search_indexes s where s.organization_id = $1 and s.stack_id = $2',
)

/** $2: stacks and $3: ids of erased entities. Returns their documents. */
export const eraseDocumentsSql = statement(
  'erase_search_documents',
  `delete from search_documents d where d.organization_id = $1 and d.ctid = any(array(
     select k.ctid from unnest($2::integer[], $3::uuid[]) as v(stack_id, id) cross join lateral (
       select k.ctid from search_documents k
       where k.organization_id = $1 and k.stack_id = v.stack_id and k.entity_id = v.id offset 0
     ) k
   )) returning d.stack_id, d.entity_id as id, d.words`,
)
