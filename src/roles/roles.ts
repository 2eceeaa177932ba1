import {
  changeDefinitions,
  type DefinitionCall,
  differences,
  nextId,
  throwKeyTaken,
  throwTooMany,
} from '../organizations/change-definitions.ts'
import { type Definitions, type FieldNames, peopleKey, type Role } from '../organizations/definitions.ts'
import { type Caller, requireGrantable } from '../route/caller.ts'
import { allFields, mayUse } from '../route/field-rights.ts'
import { type Scope, splitScopes } from '../route/scopes.ts'
import { type Detail, pointer, refuse } from '../values/errors.ts'
import { profileFlags, profileTexts } from '../values/profile-fields.ts'
import type { RoleBody, RolePatch } from './schema.ts'
import { insertRoleSql, updateRoleSql } from './sql.ts'

/** The maximum number of roles, because every process keeps the roles of its organizations in memory. */
const maxRoles = 100

/** Returns the role with that key. Throws a Fault of 404 if there is none. */
export function findRole({ roles }: Definitions, key: string): Role {
  return roles.find(role => role.key === key) ?? refuse('not_found', 'There is no such role.')
}

/** A role as a read shows it. */
export function roleToJson({ key, name, scope, fields, state, created_at, updated_at }: Role) {
  return { key, name, scopes: splitScopes(scope), fields, state, created_at, updated_at }
}

type Rules = Pick<Role, 'name' | 'scope' | 'fields' | 'state'>

/** Creates a role. Throws a Fault of 400 or 409 if the body breaks a rule. */
export async function createRole(call: DefinitionCall, body: RoleBody): Promise<Role> {
  const { key, name = key } = body
  const after: Rules = { name, scope: scopeOf(body.scopes), fields: fieldsOf(body.fields), state: 'active' }
  const definitions = await changeDefinitions(call, (current, at, tx) => {
    if (current.roles.some(role => role.key === key)) throwKeyTaken('is the key of another role')
    if (current.roles.length >= maxRoles)
      throwTooMany('The organization has reached its limit of roles. Change an existing one.', 'roles', maxRoles)
    throwIfInvalid(after.fields, current)
    const id = nextId(current.roles)
    const values = [call.organization_id, id, key, name, after.scope, jsonOf(after.fields), after.state, at]
    const store = () => tx.query(insertRoleSql, values)
    return [{ subject: 'role', id, operation: 'create', before: {}, after: { key, ...after }, store }]
  })
  return findRole(definitions, key)
}

/**
 * Changes a role. The change applies to the next request of each caller with the role. Throws a Fault of 404 for an
 * unknown role, and of 400 if the role breaks a rule or may open more than the caller has.
 */
export async function patchRole(call: DefinitionCall, caller: Caller, key: string, patch: RolePatch): Promise<Role> {
  const definitions = await changeDefinitions(call, (current, at, tx) => {
    const role = findRole(current, key)
    const changed = differences<Rules>(role, {
      ...(patch.name !== undefined && { name: patch.name }),
      ...(patch.scopes && { scope: scopeOf(patch.scopes) }),
      ...(patch.fields !== undefined && { fields: fieldsOf(patch.fields) }),
      ...(patch.state && { state: patch.state }),
    })
    if (!changed) return []
    const after = { ...role, ...changed.after }
    const isOnlyLess = after.state === 'archived' || Object.keys(changed.after).every(name => name === 'name')
    if (!isOnlyLess) requireGrantable(caller, splitScopes(after.scope) as Scope[])
    if (patch.fields) throwIfInvalid(changed.after.fields ?? null, current)
    const { name, scope, fields, state } = after
    const values = [call.organization_id, role.id, name, scope, jsonOf(fields), state, at]
    const store = () => tx.query(updateRoleSql, values)
    return [{ subject: 'role', id: role.id, operation: 'update', ...changed, store }]
  })
  return findRole(definitions, key)
}

const scopeOf = (scopes: readonly string[]) => [...new Set(scopes)].join(' ')

/** The fields with their members in a fixed order, so that equal ones have the same JSON. */
function fieldsOf(fields: RoleBody['fields']): Role['fields'] {
  if (!fields) return null
  const owners = Object.entries(fields).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(
    owners.map(([owner, { read, write = [] }]) => [owner, { read: named(read), write: named(write) }]),
  )
}

const named = (names: readonly string[]) => [...new Set(names)].sort()

const jsonOf = (fields: Role['fields']) => (fields === null ? null : JSON.stringify(fields))

function throwIfInvalid(fields: Role['fields'], { stacks }: Definitions): void {
  const details: Detail[] = []
  for (const [owner, names] of Object.entries(fields ?? {})) {
    if (owner !== peopleKey && !stacks.some(({ key }) => key === owner))
      details.push({ path: pointer('fields', owner), message: 'is neither people nor the key of a stack' })
    else details.push(...faultsOf(owner, names))
  }
  if (details.length > 0) refuse('invalid_parameter', 'The role names unknown fields. See details.', { details })
}

/**
 * Returns the faults of the fields of an owner. Undeclared attributes are allowed, because undeclared keys have values
 * too.
 */
function faultsOf(owner: string, { read, write }: FieldNames): Detail[] {
  const known = new Set([allFields, 'attribute_values', ...(owner === peopleKey ? personFields : [])])
  const access = { read: new Set(read), write: new Set(write) }
  const faults = (use: 'read' | 'write', names: string[]) =>
    names.flatMap((name): Detail[] => {
      const path = pointer('fields', owner, use, name)
      if (!known.has(name) && !/^attribute_values\../.test(name))
        return [{ path, message: `is no field here: ${[...known].join(', ')}, attribute_values.<key>` }]
      const isRead =
        use === 'read' || access.read.has(allFields) || (name !== allFields && mayUse(access, 'read', name))
      return isRead
        ? []
        : [{ path, message: 'may be written, but not read: whoever writes a field can find out its value' }]
    })
  return [...faults('read', read), ...faults('write', write)]
}

const personFields = [...profileTexts, ...profileFlags, 'consents']
