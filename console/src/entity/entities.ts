import type { AnySchema, Entities } from '@kith/client'
import { client } from '../app/client.ts'

/** A value of a person or record in a form that the pages of both share. */
export type Values = Record<string, unknown>

/** A person or record as the pages of both read it: profile fields of a person are among its members. */
export type Entity = Values & { external_id: string | null; attribute_values: Values; version: number }

type ReadOptions = { version?: number; signal?: AbortSignal }

type EntityCalls = {
  getById(id: string, options?: ReadOptions): Promise<Entity>
  patchById(
    id: string,
    body: Values,
    options: { ifMatch: number; references?: 'strict'; representation: true },
  ): Promise<Entity>
  historyById: Entities<AnySchema, 'people'>['historyById']
}

/** The endpoints of `people`, or of the records of a stack. */
export const entitiesOf = (owner: string): EntityCalls =>
  (owner === 'people' ? client.people : client.stack(owner)) as unknown as EntityCalls

/** The scopes that reading and writing the entities of an owner take. */
export const scopesOf = (owner: string): { read: string; write: string } =>
  owner === 'people' ? { read: 'people:read', write: 'people:write' } : { read: 'records:read', write: 'records:write' }
