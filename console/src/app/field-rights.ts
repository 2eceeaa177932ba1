import { channels, type Role } from '@kith/client'
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

/** Whether the session may use a field of an owner. The console does not show other fields. */
export function mayUse(use: Use, owner: string, name: string): boolean {
  const fields = sessionFields()
  return !fields || shared.includes(name) || opens(fields[owner]?.[use] ?? [], name)
}

/** Whether the role of the session opens an owner at all. */
export const isOpen = (owner: string): boolean => sessionFields()?.[owner] !== undefined || !sessionFields()

/** Whether the session may use all fields of all owners, as the lists of webhooks or erasures need it. The service names no fields then. */
export const isUnlimited = (): boolean => !sessionFields()

/** Whether the session may use all fields of an owner, as a merge or an erasure needs it. */
export const isWhole = (owner: string): boolean => mayUse('read', owner, '*') && mayUse('write', owner, '*')

/** The scopes of which every endpoint needs all fields of all owners. */
const ofUnlimited: ReadonlySet<string> = new Set(['schema:write', 'operations:read', 'webhooks:read', 'webhooks:write'])

/** The fields of people that name their addresses. */
const addressFields = ['email', 'mobile_prefix', 'mobile_number']

/** Whether the session may read the addresses of people, which the events of an address need. */
export const mayReadAddresses = (): boolean => addressFields.every(name => mayUse('read', 'people', name))

/** The answers of people, as their fields are named. */
const answerFields = ['consents', ...Object.values(channels).map(({ flag }) => flag)]

/** The scopes that the session can use: some need all fields, and a role may close them. */
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
