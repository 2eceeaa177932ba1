import { channels, type Role } from '@kith/client'
import { queryClient } from './query-client.ts'

/** The fields that the role of the session opens, by owner. Null means all. */
export type SessionFields = Role['fields']

type Use = 'read' | 'write'

const sessionFields = () => queryClient.getQueryData<{ fields?: SessionFields } | null>(['session'])?.fields

/** The fields of every entity that no role closes. */
const shared = ['id', 'record_id', 'external_id', 'stack_key', 'state', 'version', 'created_at', 'updated_at', 'label']

/** Whether the names in a role open a field, by the rules of the service. */
export const opens = (names: readonly string[], name: string): boolean =>
  names.includes('*') ||
  names.includes(name) ||
  (name.startsWith('attribute_values.') && names.includes('attribute_values'))

/** Whether the session may use a field of an owner. The console does not show other fields. */
export function mayUse(use: Use, owner: string, name: string): boolean {
  const fields = sessionFields()
  return !fields || shared.includes(name) || opens(fields[owner]?.[use] ?? [], name)
}

/** Whether the role of the session opens an owner at all. */
export const isOpen = (owner: string): boolean => sessionFields()?.[owner] !== undefined || !sessionFields()

/**
 * Whether the session may use all fields of all owners, as the lists of webhooks or erasures require. The service then
 * sends no `fields`.
 */
export const isUnlimited = (): boolean => !sessionFields()

/** Whether the session may use all fields of an owner, as a merge or an erasure requires. */
export const isWhole = (owner: string): boolean => mayUse('read', owner, '*') && mayUse('write', owner, '*')

/** The scopes whose endpoints all need every field of every owner. */
const ofUnlimited: ReadonlySet<string> = new Set(['schema:write', 'operations:read', 'webhooks:read', 'webhooks:write'])

/** The fields with the addresses of people. */
const addressFields = ['email', 'mobile_prefix', 'mobile_number']

/** Whether the session may read the addresses of people. The events of an address require it. */
export const mayReadAddresses = (): boolean => addressFields.every(name => mayUse('read', 'people', name))

/** The fields with the answers of people. */
const answerFields = ['consents', ...Object.values(channels).map(({ flag }) => flag)]

/** The scopes that the session can use. A role that closes fields makes some scopes useless. */
export function usableScopes(scopes: readonly string[]): string[] {
  const fields = sessionFields()
  if (!fields) return [...scopes]
  const hasStacks = Object.keys(fields).some(owner => owner !== 'people')
  return scopes.filter(scope => {
    if (ofUnlimited.has(scope)) return false
    if (scope === 'people:erase') return isWhole('people')
    if (scope === 'consents:read')
      return mayReadAddresses() && answerFields.every(name => mayUse('read', 'people', name))
    if (scope.startsWith('people:')) return isOpen('people')
    return !scope.startsWith('records:') || hasStacks
  })
}
