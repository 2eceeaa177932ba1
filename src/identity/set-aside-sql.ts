import { survivorOf } from '../changes/people-sql.ts'
import { statement } from '../db/db.ts'
import { timeText } from '../db/time-text.ts'

/** The set-asides of a person and of the people merged into it. */
export const setAsidesOf = (person: string) =>
  `(select s.set_aside_id from set_aside_people s where s.organization_id = $1 and s.person_id = ${person}
       union
       select s.set_aside_id from merges m join set_aside_people s on s.organization_id = $1 and s.person_id = m.merged_id
       where m.organization_id = $1 and m.person_id = ${person} and m.unmerged_sequence is null)`

/** The person to whom the row s of `set_aside_people` leads now. */
const leadOf = `coalesce((${survivorOf('s.person_id')}), s.person_id)`

/** The ids of the people who are set aside from a person. */
export const setAsideFrom = (person: string) =>
  `select ${leadOf} from set_aside_people s where s.organization_id = $1 and s.set_aside_id in ${setAsidesOf(person)}`

/** $2: people. Returns the set-aside of exactly these people, if it exists. */
export const findSetAsideSql = statement(
  'find_set_aside',
  `select s.set_aside_id as id from set_aside_people s
   where s.organization_id = $1 and s.set_aside_id in (
     select f.set_aside_id from set_aside_people f where f.organization_id = $1 and f.person_id = ($2::uuid[])[1]
   )
   group by s.set_aside_id
   having count(*) = cardinality($2::uuid[]) and bool_and(s.person_id = any($2::uuid[])) limit 1`,
)

/** $2: id, $3: people, $4: actor, $5: the time. */
export const insertSetAsideSql = statement(
  'insert_set_aside',
  `insert into set_aside_people (organization_id, set_aside_id, person_id, actor, at)
   select h.organization_id, $2::uuid, p.id, $4::text, $5::timestamptz from change_heads h cross join unnest($3::uuid[]) as p(id)
   where h.organization_id = $1`,
)

/** $2: id. Deletes a set-aside and returns its people. */
export const deleteSetAsideSql = statement(
  'delete_set_aside',
  `with gone as (
     delete from set_aside_people s where s.organization_id = $1 and s.set_aside_id = $2 returning s.person_id
   )
   select g.person_id from gone g`,
)

/**
 * $2: before this id, $3: limit, $4: only this id, or null. Returns set-asides, the newest first, with the existing
 * people whom they lead to.
 */
export const listSetAsidesSql = statement(
  'list_set_asides',
  `select a.id, a.actor, ${timeText('a.at')} as at, p.people from (
     select s.set_aside_id as id, min(s.actor) as actor, min(s.at) as at from set_aside_people s
     where s.organization_id = $1 and s.set_aside_id < $2::uuid and ($4::uuid is null or s.set_aside_id = $4)
     group by s.set_aside_id order by s.set_aside_id desc limit $3
   ) a cross join lateral (
     select coalesce(jsonb_agg(jsonb_build_object('id', e.id, 'external_id', e.external_id, 'first_name', e.first_name,
       'last_name', e.last_name, 'email', e.email) order by e.id), '[]') as people
     from (
       select distinct ${leadOf} as id from set_aside_people s where s.organization_id = $1 and s.set_aside_id = a.id
     ) l cross join lateral (
       select e.id, e.external_id, e.first_name, e.last_name, e.email from entities e
       where e.organization_id = $1 and e.stack_id = 0 and e.id = l.id offset 0
     ) e
   ) p
   order by a.id desc`,
)
