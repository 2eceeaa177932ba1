import { awaitPipelined, statement, type Transaction } from '../../src/db/db.ts'
import { insertAliases } from '../../src/entities/write/store/aliases.ts'
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
  underHead(service, { id }, (tx, at) =>
    insertAliases({ tx, organization_id: id }, [{ external_id, person_id, merge_id: null }], at),
  )

/** Gives an alias to another person. */
export const moveAlias = (service: Service, { id }: Owner, person_id: string, external_id: string) =>
  service.sql('update aliases set person_id = $2 where organization_id = $1 and external_id = $3', [
    id,
    person_id,
    external_id,
  ])
