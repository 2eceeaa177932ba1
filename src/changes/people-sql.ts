import { statement } from '../db/db.ts'
import { hashOf } from '../db/keyed-hash.ts'

/** The changes of people that released a name. The subquery keeps the planner on the index of the names. */
const releasesOf = (name: string) =>
  `(
     select c.entity_id, c.sequence, c.operation from changes c
     where c.organization_id = $1 and c.stack_id = 0 and (c.before->>'external_id') collate "C" = ${name}
       and c.before->>'external_id' is not null offset 0
   )`

/**
 * The merge of an internal identifier that was not undone. The order makes the planner choose the index, even without
 * statistics.
 */
const mergeOf = (id: string) =>
  `select m.person_id, m.sequence from merges m
   where m.organization_id = $1 and m.merged_id = ${id} and m.unmerged_sequence is null
   order by m.sequence desc limit 1`

/** The person that a merge led an internal identifier to. */
export const survivorOf = (id: string): string => `select m.person_id from (${mergeOf(id)}) m`

export type AddressKey = 'email_key' | 'mobile_key'

/**
 * A person e to whom an email or phone leads by a merge m. The fence (`offset 0`) leaves the planner only the look-up
 * of each person.
 */
export const peopleByMerge = (condition: string): string =>
  `merges m cross join lateral (
       select e.* from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = m.person_id offset 0
     ) e
     where m.organization_id = $1 and ${condition}`

/**
 * The ids of the first people who have an email or phone, their own or that of a person who was merged into them. The
 * page begins after the id `after`.
 */
export const peopleWithKey = (column: AddressKey, key: string, limit: string, after?: string): string =>
  `(select e.id from entities e
     where e.organization_id = $1 and e.stack_id = 0 and e.${column} = ${key}${after ? ` and e.id > ${after}` : ''}
     order by e.id limit ${limit})
     union
     (select e.id from ${peopleByMerge(`m.${column} = ${key}${after ? ` and m.person_id > ${after}` : ''}`)}
     order by e.id limit ${limit})`

const isGone = (id: string) =>
  `not exists (select from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = ${id})`

/** The last person who was deleted with a name and does not exist. */
const deletedWith = (name: string) =>
  `select d.entity_id from ${releasesOf(name)} d
   where d.operation = 'delete' and ${isGone('d.entity_id')}
   order by d.sequence desc limit 1`

/**
 * The last person who had a name and does not exist: the one whose deletion released the name, or the survivor of the
 * merge that released it. Returns the number of that change too. A deletion also deletes the aliases, so only the log
 * has these names.
 */
const lastDeletion = (name: string) =>
  `select l.id as entity_id, d.sequence from ${releasesOf(name)} d cross join lateral (
     select case d.operation when 'delete' then d.entity_id when 'merge' then (
       select m.person_id from (${mergeOf('d.entity_id')}) m where m.sequence = d.sequence
     ) end as id offset 0
   ) l
   where l.id is not null and ${isGone('l.id')}
   order by d.sequence desc limit 1`

const bearerOf = (name: string) =>
  `select e.id from entities e where e.organization_id = $1 and e.stack_id = 0 and e.external_id = ${name}`

/**
 * The erased person who had a name, with the number of the erasure. Only a keyed hash of the name's composed form is
 * left.
 */
const erasureWith = (name: string) =>
  `select x.entity_id, c.sequence from tombstone_keys k
     join tombstones t on t.organization_id = $1
       and t.hash = ${hashOf(`'external_id:' || normalize(${name})`)}
     join erasures x on x.organization_id = $1 and x.id = t.erasure_id
     cross join lateral (
       select c.sequence from changes c
       where c.organization_id = $1 and c.entity_id = x.entity_id order by c.version desc limit 1
     ) c
   where k.organization_id = $1`

/** The last person who was deleted with a name, or the erased person who had it, whichever was later. */
export const deletedOrErasedWith = (name: string): string =>
  `select g.entity_id as id from ((${lastDeletion(name)}) union all (${erasureWith(name)})) g order by g.sequence desc limit 1`

/** The person who has a name or to whom it leads as an alias, or else the last person who was deleted with it. */
export const personNamed = (name: string): string =>
  `coalesce((${bearerOf(name)}), (
     select s.person_id from aliases s where s.organization_id = $1 and s.external_id = ${name}
   ), (select d.entity_id from (${lastDeletion(name)}) d))`

/**
 * The person who has a name or, if no person has it and it is no alias, the last one who was deleted with it. An alias
 * that comes from a merge does not count, because another person may have had the name at an earlier time.
 */
export const bearerOrDeleted = (name: string): string =>
  `coalesce((${bearerOf(name)}), (
     select d.entity_id from (${deletedWith(name)}) d
     where not exists (select from aliases s where s.organization_id = $1 and s.external_id = ${name})
   ))`

/** The person with an internal identifier, deleted or not. */
export const personWithId = (id: string): string =>
  `(select c.entity_id from changes c where c.organization_id = $1 and c.entity_id = ${id} and c.stack_id = 0 limit 1)`

/** $2: external identifier. Returns one row, whose id is null if no person has or had the name. */
export const findPersonSql = statement('find_person', `select ${personNamed('$2')} as id`)

/**
 * $2: external identifier, $3: a person, $4: limit. Returns the other people who once had the name, or into whom such
 * people were merged, and who were deleted. The log of an erased person has no name. The people who had it last come
 * first.
 */
export const findOtherHoldersSql = statement(
  'find_other_holders',
  `select l.id from ${releasesOf('$2')} d cross join lateral (
     select coalesce((${survivorOf('d.entity_id')}), d.entity_id) as id offset 0
   ) l
   where l.id <> $3 and ${isGone('l.id')}
   group by l.id order by max(d.sequence) desc limit $4`,
)
