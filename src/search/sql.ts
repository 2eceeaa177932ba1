import { type AddressKey, peopleByMerge } from '../changes/people-sql.ts'
import { statement } from '../db/db.ts'

// The words of an entity are one text, with a space before and after each word. LIKE finds a whole word with
// `% word %`, and a prefix with `% word%`. Words consist of letters and digits, so they need no escaping in patterns.

/** $2: stacks. Returns the state of the search index of each, and the number of the last change in it, in order. */
export const readSearchStateSql = statement(
  'read_search_state',
  `select h.sequence as head, f.sequence, s.keys, s.indexed, s.total, s.is_ready
   from change_heads h cross join unnest($2::integer[]) with ordinality as q(stack_id, n)
     left join search_indexes s on s.organization_id = $1 and s.stack_id = q.stack_id
     left join followers f on f.organization_id = $1 and f.name = 'search' and f.id = 0
   where h.organization_id = $1 order by q.n`,
)

const byKey = (column: AddressKey, key: string) =>
  `(select e.id from entities e where e.organization_id = $1 and e.stack_id = $2 and e.${column} = ${key} limit $6)
   union all
   (select e.id from ${peopleByMerge(`$2 = 0 and m.${column} = ${key}`)} limit $6)`

/**
 * $2: stack, $3: external identifier, $4: key of an email, $5: key of a phone, $6: limit. Finds the entities that have
 * one of them, also as an alias or by a merge, in any order and perhaps repeatedly. An order by id could make
 * PostgreSQL search all people in that order.
 */
export const findByIdentifierSql = statement(
  'find_by_identifier',
  `select e.id from entities e where e.organization_id = $1 and e.stack_id = $2 and e.external_id = $3
   union all
   select a.person_id from aliases a where $2 = 0 and a.organization_id = $1 and a.external_id = $3
   union all ${byKey('email_key', '$4')}
   union all ${byKey('mobile_key', '$5')}`,
)

/** The condition that a word begins with another one. The greatest code point ends the range. */
const beginsWith = (word: string) => `w.word >= ${word} and w.word < ${word} || U&'\\+10FFFF'`
const ofStack = 'w.organization_id = $1 and w.stack_id = $2'

/**
 * $2: stack, $3: words, $4: the number to count to. Counts the entities that have each word, and the words that begin
 * with it.
 */
export const countWordsSql = statement(
  'count_search_words',
  `select (select count(*) from (
       select from search_words w where ${ofStack} and w.word = q.word limit $4
     ) x)::integer as exact, (select count(*) from (
       select from search_words w where ${ofStack} and ${beginsWith('q.word')} limit $4
     ) x)::integer as prefix
   from unnest($3::text[]) with ordinality as q(word, n) order by q.n`,
)

const isNew = (id: string) => `not ${id} = any($4::uuid[])`

const document = (id: string, check: string) => `exists (
       select from search_documents d
       where d.organization_id = $1 and d.stack_id = $2 and d.entity_id = ${id} and ${check} offset 0
     )`

/**
 * $2: stack, $3: after this id, $4: without these ids, $5: limit, $6: a word, $7: patterns of all words. Finds the
 * entities that have all words. $6 is the rarest word.
 */
export const findExactSql = statement(
  'find_exact',
  `select w.id from (
     select w.entity_id as id from search_words w
     where ${ofStack} and w.word = $6 and w.entity_id > $3 order by w.entity_id offset 0
   ) w where ${document('w.id', 'd.words like all($7::text[])')} and ${isNew('w.id')}
   order by w.id limit $5`,
)

/**
 * Like {@link findExactSql}, with $8: a second word. Merges the lists of two frequent words, which end together. Run it
 * with {@link preferOrderSql}: looking up each entry of one list in the other took 600 ms for two lists without a
 * common entry.
 */
export const findExactOfBothSql = statement(
  'find_exact_of_both',
  `select w.id from (
     select w.entity_id as id from search_words w join search_words v on v.entity_id = w.entity_id
     where ${ofStack} and w.word = $6 and w.entity_id > $3
       and v.organization_id = $1 and v.stack_id = $2 and v.word = $8 and v.entity_id > $3
     order by w.entity_id offset 0
   ) w where ${document('w.id', 'd.words like all($7::text[])')} and ${isNew('w.id')}
   order by w.id limit $5`,
)

const settings = ['hashjoin', 'nestloop', 'sort', 'bitmapscan']
const switchPlans = (value: string) =>
  `select ${settings.map(name => `set_config('enable_${name}', '${value}', true)`).join(', ')}`

/** Disables parallel workers, because they take 20 ms to start, which is longer than a search. */
export const searchAloneSql = statement(
  'search_alone',
  `select set_config('max_parallel_workers_per_gather', '0', true)`,
)

/**
 * Makes PostgreSQL read both lists, or the documents, in order, and stop at the end of the page. Otherwise it would
 * rely on row estimates that it cannot make.
 */
export const preferOrderSql = statement('prefer_order', switchPlans('off'))
export const preferNothingSql = statement('prefer_nothing', switchPlans('on'))

const beginsOnly = 'd.words like all($7::text[]) and not d.words like all($8::text[]) and not d.words ~ any($9::text[])'

/**
 * Parameters as for {@link findExactSql}, but $7: patterns of the prefixes of all words, $8: patterns of all words, and
 * $9: expressions of all words of each other reading of the text. Finds the entities that have words beginning with
 * each word, but neither all words of $8 nor those of one of $9 exactly. Reads all entries of the words that begin with
 * $6.
 */
export const findPrefixSql = statement(
  'find_prefix',
  `select c.id from (
     select distinct w.entity_id as id from search_words w
     where ${ofStack} and ${beginsWith('$6::text')} and w.entity_id > $3 order by w.entity_id offset 0
   ) c where ${document('c.id', beginsOnly)} and ${isNew('c.id')}
   order by c.id limit $5`,
)

/**
 * Like {@link findPrefixSql}, with $10: the prefix of a second word. Compares the lists of both before it reads any
 * document.
 */
export const findPrefixOfBothSql = statement(
  'find_prefix_of_both',
  `select c.id from (
     select x.id from (
       select w.entity_id as id, 1 as n from search_words w where ${ofStack} and ${beginsWith('$6::text')} and w.entity_id > $3
       union all
       select w.entity_id, 2 from search_words w where ${ofStack} and ${beginsWith('$10::text')} and w.entity_id > $3
     ) x group by x.id having bit_or(x.n) = 3 order by x.id offset 0
   ) c where ${document('c.id', beginsOnly)} and ${isNew('c.id')}
   order by c.id limit $5`,
)

/**
 * Like {@link findPrefixSql}, without $6, for frequent prefixes. Reads the documents in order until enough of them
 * match.
 */
export const walkPrefixSql = statement(
  'walk_prefix',
  `select d.entity_id as id from search_documents d
   where d.organization_id = $1 and d.stack_id = $2 and d.entity_id > $3 and $6::text is not null and ${beginsOnly}
     and ${isNew('d.entity_id')}
   order by d.entity_id limit $5`,
)

/**
 * $2: stack, $3: trigrams with their positions, $4: the minimum number of common ones, $5: the rest of a word without
 * one letter, $6: limit.
 */
export const findSimilarWordsSql = statement(
  'find_similar_words',
  `(select f.word from search_features f
    where f.organization_id = $1 and f.stack_id = $2 and f.feature = any($3::text[])
    group by f.word having count(*) >= $4::integer order by count(*) desc, f.word limit $6)
   union
   (select f.word from search_features f
    where f.organization_id = $1 and f.stack_id = $2 and f.feature = any($5::text[]) limit $6)`,
)

/** $2: stack, $3: words, $4: the number to count to. Counts the entities that have each word. */
export const countEntitiesSql = statement(
  'count_search_entities',
  `select (select count(*) from (
       select from search_words w where ${ofStack} and w.word = q.word limit $4
     ) x)::integer as count
   from unnest($3::text[]) with ordinality as q(word, n) order by q.n`,
)

/**
 * $2: stack, $3: after this id, $4: without these ids, $5: limit, $6: after this number of typos. The candidates have a
 * word of $7 with the typos $8, at most $9 entities each, or a word that begins with one of $11, at most $12 entities
 * each. If $11 has two words, the candidates match both, and $10 says which of them a word of $7 matches. $13: the
 * number of candidates. $14: the words except the first of $11. $15: similar words, with $16 typos, for the word of $14
 * with the number $17. $18: patterns of the prefixes of all words. $19: for each word of $14, an expression of all
 * words that match it, because it costs less than counting typos. Finds the entities with at least one similar word.
 */
export const findSimilarSql = statement(
  'find_similar',
  `with candidates as materialized (
     select x.id, min(x.typos) filter (where x.n = 1) as typos from (
       select w.id, 0 as typos, f.n::integer from unnest($11::text[]) with ordinality as f(word, n) cross join lateral (
         select w.entity_id as id from search_words w
         where ${ofStack} and ${beginsWith('f.word')} order by w.word, w.entity_id limit $12
       ) w
       union all
       select w.id, a.typos, a.n
       from unnest($7::text[], $8::integer[], $9::integer[], $10::integer[]) as a(word, typos, max, n) cross join lateral (
         select w.entity_id as id from search_words w where ${ofStack} and w.word = a.word order by w.entity_id limit a.max
       ) w
     ) x group by x.id having bit_or(x.n) = 2 * cardinality($11::text[]) - 1 order by 2, 1 limit $13
   ), ranked as (
     select c.id, c.typos + others.typos as typos from candidates c cross join lateral (
       select d.words from search_documents d
       where d.organization_id = $1 and d.stack_id = $2 and d.entity_id = c.id and not d.words like all($18::text[])
         and d.words ~ all($19::text[]) offset 0
     ) d cross join lateral (
       select coalesce(sum(o.typos), 0)::integer as typos, coalesce(bool_and(o.typos is not null), true) as are_found from (
         select case when strpos(d.words, ' ' || q.word) > 0 then 0 else (
             select min(s.typos) from unnest($15::text[], $16::integer[], $17::integer[]) as s(word, typos, n)
             where s.n = q.n and strpos(d.words, ' ' || s.word || ' ') > 0
           ) end as typos
         from unnest($14::text[]) with ordinality as q(word, n)
       ) o
     ) others where others.are_found
   )
   select r.id, r.typos from (
     select r.id, r.typos from ranked r where (r.typos, r.id) > ($6::integer, $3::uuid) order by r.typos, r.id offset 0
   ) r where ${isNew('r.id')}
   order by r.typos, r.id limit $5`,
)
