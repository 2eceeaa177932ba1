import { statement } from '../db/db.ts'

/** The newest person who was deleted with a name and does not exist. The outer condition cannot choose the index of the inner scan. */
export const deletedWith = (name: string): string =>
  `select d.entity_id from (
     select c.entity_id, c.sequence, c.operation from changes c
     where c.organization_id = $1 and c.stack_id = 0 and (c.before->>'external_id') collate "C" = ${name}
       and c.before->>'external_id' is not null offset 0
   ) d
   where d.operation = 'delete' and not exists (
     select from entities e where e.organization_id = $1 and e.stack_id = 0 and e.id = d.entity_id
   )
   order by d.sequence desc limit 1`

const bearerOf = (name: string) =>
  `select e.id from entities e where e.organization_id = $1 and e.stack_id = 0 and e.external_id = ${name}`

/** The person who was erased and last had a name, of which only a keyed hash is left. */
export const erasedWith = (name: string): string =>
  `select x.entity_id as id from tombstone_keys k
     join tombstones t on t.organization_id = $1
       and t.hash = sha256(k.secret || sha256(k.secret || convert_to('external_id:' || ${name}, 'UTF8')))
     join erasures x on x.organization_id = $1 and x.id = t.erasure_id
   where k.organization_id = $1`

/** The person who has a name, now or last, or else the one that it leads to as an alias. */
export const personNamed = (name: string): string =>
  `coalesce((${bearerOf(name)}), (
     select s.person_id from aliases s where s.organization_id = $1 and s.external_id = ${name}
   ), (${deletedWith(name)}))`

/** The person who has a name or, if nobody has it and it is no alias, the last one who was deleted with it. */
export const bearerOrDeleted = (name: string): string =>
  `coalesce((${bearerOf(name)}), (
     select d.entity_id from (${deletedWith(name)}) d
     where not exists (select from aliases s where s.organization_id = $1 and s.external_id = ${name})
   ))`

/** The person with an internal identifier, deleted or not. */
export const personWithId = (id: string): string =>
  `(select c.entity_id from changes c where c.organization_id = $1 and c.entity_id = ${id} and c.stack_id = 0 limit 1)`

/** $2: external identifier. Returns one row, whose id is null if nobody has or had the name. */
export const findPersonSql = statement('find_person', `select ${personNamed('$2')} as id`)

/** $2: external identifier. */
export const findErasedNamedSql = statement('find_erased_named', erasedWith('$2'))
