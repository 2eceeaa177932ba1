import { peopleWithKey } from '../../../changes/people-sql.ts'
import { statement } from '../../../db/db.ts'
import { hashed, hashOf } from '../../../db/keyed-hash.ts'
import { profileFlags, profileTexts } from '../../../values/profile-fields.ts'
import { byAlias, byMerge } from '../../bearers-sql.ts'

// The statements of load.ts, which runs them under the lock of the head.

/** The columns that a set reads of the rows e. */
const readColumns = [
  'stack_id',
  'id',
  'external_id',
  'active',
  'version',
  ...profileTexts,
  ...profileFlags,
  'answers',
  'attributes',
]
  .map(column => `e.${column}`)
  .join(', ')

// The planner expects 100 rows of a set and an average number of rows of an organization. It would scan a large
// organization for a single write (90 ms with 100,000 people, among 10,000 small organizations). A fence, `cross join
// lateral (… offset 0)`, forces an index look-up for each element.

/** $2: [{stack_id, external_id | id}]. Returns each row once, with its `ctid`. */
export const readRowsSql = statement(
  'read_rows',
  `with addressed as materialized (
     select a.stack_id, a.external_id, a.id
     from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, id uuid)
   ), wanted as materialized (
     select a.stack_id, e.id from addressed a cross join lateral (
       select e.id from entities e
       where e.organization_id = $1 and e.stack_id = a.stack_id and e.external_id = a.external_id offset 0
     ) e
     union
     select a.stack_id, a.id from addressed a where a.id is not null
   )
   select e.* from wanted w cross join lateral (
     select e.ctid, ${readColumns} from entities e
     where e.organization_id = $1 and e.stack_id = w.stack_id and e.id = w.id offset 0
   ) e`,
)

/**
 * As {@link readRowsSql}, for sets that address one stack by external identifier only, as nearly all sets do. $2:
 * stack, $3: external identifiers, one per line and each once.
 */
export const readNamedSql = statement(
  'read_named',
  `select e.* from string_to_table($3, E'\\n') as a(name) cross join lateral (
     select e.ctid, ${readColumns} from entities e
     where e.organization_id = $1 and e.stack_id = $2 and e.external_id = a.name offset 0
   ) e`,
)

// A person has further identifiers: aliases, which are external identifiers, and the internal identifiers of the people
// who were merged into it. An external identifier is never both the name of an entity and an alias. Only organizations
// with an alias or a merge run these statements. The others run those above, which look up half as much.

/**
 * As `read_rows`, and finds people by alias and by merged identifier too. Such a row has the identifier that it was
 * found by as `alias_name` or `alias_id`.
 */
export const readRowsWithAliasesSql = statement(
  'read_rows_with_aliases',
  `with addressed as materialized (
     select a.stack_id, a.external_id, a.id
     from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, id uuid)
   ), wanted as materialized (
     select a.stack_id, e.id, null::text as alias_name, null::uuid as alias_id
     from addressed a cross join lateral (
       select e.id from entities e
       where e.organization_id = $1 and e.stack_id = a.stack_id and e.external_id = a.external_id offset 0
     ) e
     union
     select a.stack_id, a.id, null, null from addressed a where a.id is not null
     union
     select 0, s.person_id, a.external_id, null from addressed a cross join lateral ${byAlias} s
     union
     select 0, m.person_id, null, a.id from addressed a cross join lateral ${byMerge} m
   )
   select e.*, w.alias_name, w.alias_id from wanted w cross join lateral (
     select e.ctid, ${readColumns} from entities e
     where e.organization_id = $1 and e.stack_id = w.stack_id and e.id = w.id offset 0
   ) e`,
)

// The change log has the names that deletions and renames released, and `name_versions` those that are not in the log.

/** Whether an entity of the organization ever released a name. */
const hasReleases = `(
       exists (select from changes h where h.organization_id = $1 and h.before->>'external_id' is not null)
       or exists (select from name_versions h where h.organization_id = $1)
     )`

/** The hash of the name a.external_id of the stack a.stack_id. */
export const hashOfName = hashOf(`a.stack_id || ':' || a.external_id`)

/** The highest version at which an entity released the name a.external_id of the stack a.stack_id; null if none did. */
const lastRelease = `greatest((
       select c.version from changes c
       where c.organization_id = $1 and c.stack_id = a.stack_id
         and (c.before->>'external_id') collate "C" = a.external_id
         and c.before->>'external_id' is not null
       order by c.version desc limit 1
     ), (
       select n.version from tombstone_keys k join name_versions n on n.organization_id = $1 and n.hash = ${hashOfName}
       where k.organization_id = $1 and exists (select from name_versions h where h.organization_id = $1)
     ))`

/**
 * $2: [{stack_id, external_id}]. Returns the highest version at which an entity released each name. If the organization
 * never released a name, 1,000 names cost two index look-ups.
 */
export const readNamesLeftSql = statement(
  'read_names_left',
  `select a.stack_id, a.external_id, l.version
   from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text) cross join lateral (
     select ${lastRelease} as version offset 0
   ) l
   where l.version is not null and ${hasReleases}`,
)

/**
 * $2: [{source_id, attribute_ids}]. Returns the links, including those to deleted targets and those that lead to the
 * target of another link. A merge of very many links may not have moved all of them yet. Here the unmoved ones lead to
 * the survivor, too.
 */
export const readLinksSql = statement(
  'read_links',
  `select s.source_id, l.attribute_id, p.id, t.external_id, t.id is null as is_deleted,
     coalesce(l.written_id, nullif(l.target_id, p.id)) as written_id
   from jsonb_to_recordset($2::text::jsonb) as s(source_id uuid, attribute_ids integer[]) cross join lateral (
     select l.attribute_id, l.target_stack_id, l.target_id, l.written_id, l.position from links l
     where l.organization_id = $1 and l.source_id = s.source_id and l.attribute_id = any(s.attribute_ids) offset 0
   ) l cross join lateral (
     select coalesce((
       select m.person_id from merges m
       where m.organization_id = $1 and m.merged_id = l.target_id and m.unmerged_sequence is null and m.moving is not null
     ), l.target_id, (
       select m.person_id from merges m
       where m.organization_id = $1 and m.merged_id = l.written_id and m.unmerged_sequence is null
     ), l.written_id) as id offset 0
   ) p left join lateral (
     select t.id, t.external_id from entities t
     where t.organization_id = $1 and t.stack_id = l.target_stack_id and t.id = p.id offset 0
   ) t on true
   order by s.source_id, l.attribute_id, l.position`,
)

const person = 'e.id, e.external_id'

const byKey = (kind: 'email' | 'mobile') =>
  `(select '${kind}' as kind, ${person}, e.is_merged from (${peopleWithKey(`${kind}_key`, `a.${kind}`, '$3')}) k cross join lateral (
       select ${person}, e.${kind}_key is distinct from a.${kind} as is_merged from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.id = k.id offset 0
     ) e order by e.id limit $3)`

/**
 * $2: [{number, external_id, email, mobile}], the keys to find people by, $3: maximum number of people per key. Returns
 * the people who have each key. With `is_merged`, a merge leads the key to the person, whose own key is another one.
 */
export const findMatchesSql = statement(
  'find_matches',
  `select a.number, e.* from jsonb_to_recordset($2::text::jsonb) as a(number integer, external_id text, email text, mobile text)
   cross join lateral (
     (select 'external_id' as kind, ${person}, false as is_merged from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.external_id = a.external_id offset 0)
     union all
     (select 'external_id', ${person}, false from (
       select s.person_id from aliases s
       where s.organization_id = $1 and s.external_id = a.external_id offset 0
     ) s cross join lateral (
       select ${person} from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = s.person_id offset 0
     ) e)
     union all
     ${byKey('email')}
     union all
     ${byKey('mobile')}
   ) e`,
)

/**
 * $2: [{number, stack_id, index_id, term, key, value}]. Returns up to two entities that have each value, because one
 * may be the entity that is written. The term leads to candidates, and the value in the row decides.
 */
export const findHoldersSql = statement(
  'find_holders',
  `select a.number, h.id, h.external_id
   from jsonb_to_recordset($2::text::jsonb) as a(number integer, stack_id integer, index_id integer, term text, key text, value jsonb)
   cross join lateral (
     select e.id, e.external_id from (
       select t.entity_id from terms t
       where t.organization_id = $1 and t.index_id = a.index_id and t.value = a.term offset 0
     ) t cross join lateral (
       select e.id, e.external_id from entities e
       where e.organization_id = $1 and e.stack_id = a.stack_id and e.id = t.entity_id and e.attributes->a.key = a.value offset 0
     ) e limit 2
   ) h`,
)

/** $2: values such as `email:ada@example.com`. Returns those that have a tombstone. */
export const readTombstonesSql = statement(
  'read_tombstones',
  `select v.value from ${hashed} cross join lateral (
     select from tombstones t where t.organization_id = $1 and t.hash = h.hash offset 0
   ) t`,
)

/**
 * $2: values such as `email:ada@example.com`, $3: number of a change. Returns those that have a tombstone from before
 * it.
 */
export const readTombstonesBeforeSql = statement(
  'read_tombstones_before',
  `select v.value from ${hashed} cross join lateral (
     select t.erasure_id from tombstones t where t.organization_id = $1 and t.hash = h.hash offset 0
   ) t join erasures x on x.organization_id = $1 and x.id = t.erasure_id cross join lateral (
     select c.sequence from changes c
     where c.organization_id = $1 and c.entity_id = x.entity_id order by c.version desc limit 1
   ) c
   where c.sequence < $3`,
)

/**
 * $2: [{position, person_ids, consent_type_id, channel, state, collected_at, undated, evidence}]. Returns the answers
 * that the history of one of the people has. An answer without `collected_at` equals one of any time, or only an
 * undated one if it is `undated`.
 */
export const readKnownAnswersSql = statement(
  'read_known_answers',
  `select v.position, v.consent_type_id, v.channel
   from jsonb_to_recordset($2::text::jsonb) as v(position integer, person_ids uuid[], consent_type_id integer, channel text,
     state boolean, collected_at timestamptz, undated boolean, evidence jsonb) cross join lateral (
       select from consent_history h
       where h.organization_id = $1 and h.person_id = any(v.person_ids) and h.consent_type_id = v.consent_type_id
         and h.channel = v.channel and h.state = v.state and h.evidence is not distinct from v.evidence
         and case when v.undated then h.undated else v.collected_at is null or coalesce(h.collected_at, h.at) = v.collected_at end
       limit 1
     ) h`,
)
