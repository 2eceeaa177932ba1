import { survivorOf } from '../../changes/people-sql.ts'
import { statement } from '../../db/db.ts'

/** Whether a hold h is in force at a time. */
const inForce = (at: string) => `h.released_at is null and (h.until is null or h.until > ${at})`

/** The people who are held at a time. The internal identifiers in the holds lead to them, also after merges. */
export const heldPeople = (at: string): string =>
  `select coalesce((${survivorOf('p.id')}), p.id) as id from person_holds h cross join lateral unnest(h.people) as p(id)
     where h.organization_id = $1 and ${inForce(at)}`

/** $2: people, $3: the time. Returns the held ones. */
export const readHeldSql = statement(
  'read_held',
  `select distinct x.id from (${heldPeople('$3')}) x where x.id = any($2::uuid[])`,
)

/**
 * $2: a person and the people who were merged into it, $3: the time. Returns their holds that are in force, oldest
 * first.
 */
export const readHoldsOfSql = statement(
  'read_holds_of',
  `select h.id, h.people, h.reason, h.until, h.actor, h.created_at from person_holds h
   where h.organization_id = $1 and h.people && $2::uuid[] and ${inForce('$3')} order by h.id`,
)

/**
 * $2: the time, $3: after this id, $4: limit, $5: a person, or null for all. Returns the holds that are in force, with
 * their current people. Several people of a hold may have been merged into one.
 */
export const listHoldsSql = statement(
  'list_holds',
  `select h.id, coalesce((
     select jsonb_agg(jsonb_build_object('id', l.id, 'external_id', e.external_id) order by l.id) from (
       select distinct coalesce((${survivorOf('p.id')}), p.id) as id from unnest(h.people) as p(id)
     ) l left join entities e on e.organization_id = $1 and e.stack_id = 0 and e.id = l.id
   ), '[]') as people, h.reason, h.until, h.actor, h.created_at
   from person_holds h
   where h.organization_id = $1 and h.id > $3 and h.people <> '{}' and ${inForce('$2')} and ($5::uuid is null or exists (
       select from unnest(h.people) as p(id) where coalesce((${survivorOf('p.id')}), p.id) = $5
     )) order by h.id limit $4`,
)

/** $2: a person. Returns a row if the person was erased and did not come back. */
export const isErasedSql = statement(
  'is_erased',
  `select x.id from erasures x where x.organization_id = $1 and x.entity_id = $2
     and not exists (select from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = $2) limit 1`,
)

/** Returns the next id. The head must be locked. */
export const nextHoldIdSql = statement(
  'next_hold_id',
  'select coalesce(max(h.id), 0) + 1 as id from person_holds h where h.organization_id = $1',
)

/** $2: id, $3: people, $4: reason, $5: until, $6: actor, $7: the time of its creation, $8: the time of its end. */
export const storeHoldSql = statement(
  'store_hold',
  `insert into person_holds (organization_id, id, people, reason, until, actor, created_at, released_at)
   values ($1, $2, $3::uuid[], $4, $5, $6, $7, $8)
   on conflict (organization_id, id) do update set people = excluded.people, reason = excluded.reason, until = excluded.until,
     released_at = excluded.released_at`,
)
