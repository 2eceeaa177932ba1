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

/** The person who has a name or, if nobody has it, the last one who was deleted with it. */
export const personNamed = (name: string): string =>
  `coalesce((
     select e.id from entities e where e.organization_id = $1 and e.stack_id = 0 and e.external_id = ${name}
   ), (${deletedWith(name)}))`

/** The person with an internal identifier, deleted or not. */
export const personWithId = (id: string): string =>
  `(select c.entity_id from changes c where c.organization_id = $1 and c.entity_id = ${id} and c.stack_id = 0 limit 1)`

/** $2: external identifier. Returns one row, whose id is null if nobody has or had the name. */
export const findPersonSql = statement('find_person', `select ${personNamed('$2')} as id`)
