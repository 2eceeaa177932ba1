import { statement } from '../../db/db.ts'
import { readColumns, rememberNames } from './sql.ts'

// A person has further identifiers: aliases, which are external identifiers, and the internal identifiers of the people who were
// merged into it. An external identifier is never both the name of an entity and an alias. Only organizations with an alias or a
// merge run these statements in place of those of sql.ts, which look up half as much.

/** The person that the alias a.external_id leads to. */
const byAlias = `(
       select s.person_id from aliases s
       where a.stack_id = 0 and s.organization_id = $1 and s.external_id = a.external_id offset 0
     )`

/** The person that the merged identifier a.id leads to. */
const byMerge = `(
       select m.person_id from merges m
       where a.stack_id = 0 and m.organization_id = $1 and m.merged_id = a.id and m.unmerged_sequence is null offset 0
     )`

/**
 * As `read_rows`, and finds people by alias and by merged identifier too. Such a row has the identifier that it was found by as
 * `alias_name` or `alias_id`.
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

/**
 * $2: [{stack_id, external_id | id}]. Returns the people that aliases and merged identifiers lead to: the identifier as
 * `alias_name` or `alias_id`, and the person's id and external identifier.
 */
export const readAliasesSql = statement(
  'read_aliases',
  `select a.external_id as alias_name, a.id as alias_id, e.id, e.external_id
   from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, id uuid) cross join lateral (
     select s.person_id from ${byAlias} s
     union all
     select m.person_id from ${byMerge} m
   ) p cross join lateral (
     select e.id, e.external_id from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.id = p.person_id offset 0
   ) e`,
)

/** As `read_bearers`, and finds people by alias and by the internal identifier of a person who was merged into them. */
export const readBearersWithAliasesSql = statement(
  'read_bearers_with_aliases',
  `select a.stack_id, a.external_id, a.id as asked_id, e.id, e.is_alias, e.current_name
   from jsonb_to_recordset($2::text::jsonb) as a(stack_id integer, external_id text, id uuid) cross join lateral (
     (select e.id, false as is_alias, e.external_id as current_name from entities e
     where e.organization_id = $1 and e.stack_id = a.stack_id and e.external_id = a.external_id offset 0)
     union all
     (select e.id, false, e.external_id from entities e
     where e.organization_id = $1 and e.stack_id = a.stack_id and e.id = a.id offset 0)
     union all
     (select e.id, true, e.external_id from (
       select s.person_id from ${byAlias} s union all select m.person_id from ${byMerge} m
     ) s cross join lateral (
       select e.id, e.external_id from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.id = s.person_id offset 0
     ) e)
   ) e`,
)

/**
 * Increments the version of the definitions if the organization has neither an alias nor a merge, so that every process learns of
 * the first one. Runs before it is inserted, in its transaction.
 */
export const countFirstAliasSql = statement(
  'count_first_alias',
  `update change_heads h set schema_version = h.schema_version + 1
   where h.organization_id = $1
     and not exists (select from aliases a where a.organization_id = $1)
     and not exists (select from merges m where m.organization_id = $1 and m.unmerged_sequence is null)`,
)

/** $2: [{external_id, person_id, merge_id}], $3: the time. */
export const insertAliasesSql = statement(
  'insert_aliases',
  `insert into aliases (organization_id, external_id, person_id, merge_id, created_at)
   select h.organization_id, v.external_id, v.person_id, v.merge_id, $3
   from change_heads h cross join jsonb_to_recordset($2::text::jsonb) as v(external_id text, person_id uuid, merge_id integer)
   where h.organization_id = $1`,
)

/**
 * $2: [{stack_id, id, version}]. Remembers the versions at which deleted people release their aliases, which {@link deleteAliasesSql} then
 * deletes.
 */
export const rememberAliasesSql = statement(
  'remember_aliases',
  rememberNames(`jsonb_to_recordset($2::text::jsonb) as v(stack_id integer, id uuid, version integer) cross join lateral (
       select v.stack_id, s.external_id, v.version from aliases s
       where s.organization_id = $1 and s.person_id = v.id offset 0
     ) a`),
)

/** $2: [{person_id, external_id}]. Deletes an alias of a person, or all of them if the external identifier is null. */
export const deleteAliasesSql = statement(
  'delete_aliases',
  `delete from aliases s where s.organization_id = $1 and s.ctid = any(array(
     select s.ctid from jsonb_to_recordset($2::text::jsonb) as v(person_id uuid, external_id text) cross join lateral (
       select s.ctid from aliases s
       where s.organization_id = $1 and s.person_id = v.person_id
         and (v.external_id is null or s.external_id = v.external_id) offset 0
     ) s
   ))`,
)
