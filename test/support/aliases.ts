import { awaitPipelined, statement, type Transaction } from '../../src/db/db.ts'
import { countFirstAlias, insertAliases } from '../../src/entities/alias-stage.ts'
import type { Organization, Service } from './service.ts'

type Owner = Pick<Organization, 'id'>

/** Locks the head as apply does, and runs `store` under the lock. */
const underHead = (
  { db }: Service,
  { id }: Owner,
  store: (tx: Transaction, at: string) => Promise<unknown>[],
): Promise<void> =>
  db.transaction(async tx => {
    await tx.query(statement('', 'select from change_heads where organization_id = $1 for update'), [id])
    await awaitPipelined(store(tx, new Date().toISOString()))
  })

/** Stores an alias of a person, as a match by email or phone does. */
export const giveAlias = (service: Service, { id }: Owner, person_id: string, external_id: string) =>
  underHead(service, { id }, (tx, at) => insertAliases(tx, id, [{ external_id, person_id, merge_id: null }], at))

/** Gives an alias to another person. */
export const moveAlias = (service: Service, { id }: Owner, person_id: string, external_id: string) =>
  service.sql('update aliases set person_id = $2 where organization_id = $1 and external_id = $3', [
    id,
    person_id,
    external_id,
  ])

/** Merges two people who have no values but their names: the first into the second. */
export const mergeNames = (service: Service, { id }: Owner, merged_id: string, into_id: string) =>
  underHead(service, { id }, (tx, at) => {
    const run = (text: string, ...values: unknown[]) => tx.query(statement('', text), [id, ...values])
    return [
      countFirstAlias(tx, id),
      run(
        `with gone as (
           delete from entities where organization_id = $1 and id = $2 returning external_id, version
         ), head as (
           update change_heads set sequence = sequence + 1 where organization_id = $1 returning sequence
         ), logged as (
           insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, before,
             after, actor, request_id)
           select $1, head.sequence, $4, 'entity', 0, $2, 'merge', gone.version + 1,
             jsonb_build_object('external_id', gone.external_id, 'state', 'active'),
             jsonb_build_object('merged_into', $3::uuid), 'tests', 'tests' from head, gone
         ), earlier as (
           update merges set person_id = $3 where organization_id = $1 and person_id = $2
         ), moved as (
           update aliases set person_id = $3 where organization_id = $1 and person_id = $2
         ), merge as (
           insert into merges (organization_id, id, merged_id, into_id, person_id, sequence, at)
           select $1, coalesce((select max(id) from merges where organization_id = $1), 0) + 1, $2, $3, $3, head.sequence, $4
           from head returning id
         )
         insert into aliases (organization_id, external_id, person_id, merge_id, created_at)
         select $1, gone.external_id, $3, merge.id, $4 from gone, merge`,
        merged_id,
        into_id,
        at,
      ),
    ]
  })
