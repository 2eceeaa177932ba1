import type { Role } from '@kith/client'
import { queryClient } from './query-client.ts'

/** The fields that the role of the session opens, by owner. Null: all. */
export type SessionFields = Role['fields']

type Use = 'read' | 'write'

const sessionFields = () => queryClient.getQueryData<{ fields?: SessionFields } | null>(['session'])?.fields

/** The fields of every entity, which a role does not close. */
const shared = ['id', 'record_id', 'external_id', 'stack_key', 'state', 'version', 'created_at', 'updated_at', 'label']

/** Whether names of a role open a field, as the service reads them. */
export const opens = (names: readonly string[], name: string): boolean =>
  names.includes('*') ||
  names.includes(name) ||
  (name.startsWith('attribute_values.') && names.includes('attribute_values'))

/** Whether the session may use a field of an owner. What it may not use is not shown. */
export function mayUse(use: Use, owner: string, name: string): boolean {
  const fields = sessionFields()
  return !fields || shared.includes(name) || opens(fields[owner]?.[use] ?? [], name)
}

/** Whether the role of the session opens an owner at all. */
export const isOpen = (owner: string): boolean => sessionFields()?.[owner] !== undefined || !sessionFields()

/** Whether the session may use all fields of an owner, as a merge or an erasure needs it. */
export const isWhole = (owner: string): boolean => mayUse('read', owner, '*') && mayUse('write', owner, '*')

/** The scopes that the session can use: some need all fields, and a role may close them. */
export function usableScopes(scopes: readonly string[]): string[] {
  if (!sessionFields()) return [...scopes]
  const mayRead = (name: string) => mayUse('read', 'people', name)
  return scopes.filter(scope => {
    if (scope === 'people:erase' || scope.startsWith('webhooks:')) return isWhole('people')
    if (scope === 'schema:write' || scope === 'operations:read') return false
    if (scope === 'consents:read') return ['consents', 'email', 'mobile_number', 'mobile_prefix'].every(mayRead)
    return true
  })
}
