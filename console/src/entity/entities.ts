import type { AnySchema, Entities, Filter, Page } from '@kith/client'
import { client } from '../app/client.ts'

/** A value of a person or record in a form that the pages of both share. */
export type Values = Record<string, unknown>

/** A person or record as the pages of both read it: profile fields of a person are among its members. */
export type Entity = Values & {
  id?: string
  record_id?: string
  external_id: string | null
  attribute_values: Values
  state: 'active' | 'placeholder'
  version: number
  created_at: string
  updated_at: string
  as_of?: { at: string; version: number }
}

/** The internal identifier. */
export const idOf = ({ id, record_id }: { id?: string; record_id?: string }): string => id ?? record_id ?? ''

type ReadOptions = { version?: number; at?: string; signal?: AbortSignal }
type Listing<E> = { page(): Promise<Page<E>> }

type EntityCalls = {
  get(externalId: string, options?: ReadOptions): Promise<Entity>
  getById(id: string, options?: ReadOptions): Promise<Entity>
  create(body: Values, options: { idempotencyKey: string; references?: 'strict' }): Promise<Entity>
  patchById(
    id: string,
    body: Values,
    options: { ifMatch: number; references?: 'strict'; representation: true },
  ): Promise<Entity>
  deleteById(id: string, options: { ifMatch: number }): Promise<unknown>
  restore(id: string): Promise<Entity>
  historyById: Entities<AnySchema, 'people'>['historyById']
  list(options: object): Listing<Entity>
  filter(filter: Filter, options: object): Listing<Entity>
  search(text: string, options: object): Listing<Entity>
  count(filter: Filter | undefined, options: { signal?: AbortSignal }): Promise<{ count: number }>
  relatedById(id: string, options: object): Listing<Entity>
}

/** The endpoints of `people`, or of the records of a stack. */
export const entitiesOf = (owner: string): EntityCalls =>
  (owner === 'people' ? client.people : client.stack(owner)) as unknown as EntityCalls

/** The member that is the internal identifier. */
export const idFieldOf = (owner: string): 'id' | 'record_id' => (owner === 'people' ? 'id' : 'record_id')

/** The scopes that reading and writing the entities of an owner take. */
export const scopesOf = (owner: string): { read: string; write: string } =>
  owner === 'people' ? { read: 'people:read', write: 'people:write' } : { read: 'records:read', write: 'records:write' }
