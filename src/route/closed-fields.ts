import { refuse } from '../values/errors.ts'
import { parseExactly } from '../values/parse-json.ts'
import { profileFlags, readTexts } from '../values/profile-fields.ts'
import type { Call } from './call.ts'
import { accessOfOwner, type FieldAccess, mayRead } from './field-rights.ts'
import type { Route } from './route.ts'

/** The members of an entity that a role can close. */
const closable: ReadonlySet<string> = new Set([...readTexts, ...profileFlags, 'consents'])

/** The JSON of an entity, as a read shows it, without closed fields. Numbers stay exact. */
export function closeEntity(json: string, access: FieldAccess): string {
  const entity = parseExactly(json)
  if (typeof entity !== 'object' || entity === null) return json
  return JSON.stringify(closeValues(entity as Record<string, unknown>, access))
}

/** The values of an entity or of a logged change, without closed fields. `attribute_values` may become empty. */
export function closeValues(values: Record<string, unknown>, access: FieldAccess): Record<string, unknown> {
  const shown = Object.entries(values).filter(([name]) => !closable.has(name) || mayRead(access, name))
  return Object.fromEntries(
    shown.map(([name, value]) => [
      name,
      name === 'attribute_values' && value ? closeAttributes(value as Record<string, unknown>, access) : value,
    ]),
  )
}

/** The attribute values with readable keys. */
export const closeAttributes = (values: Record<string, unknown>, access: FieldAccess): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([key]) => mayRead(access, `attribute_values.${key}`)))

const people = 'people'

/**
 * Throws a Fault of 403 unless the caller's role opens the fields that the row needs, see `fields` of the route table.
 */
export function requireFields({ path, fields }: Route, { caller, params }: Pick<Call, 'caller' | 'params'>): void {
  const { rights } = caller
  if (!rights || fields === 'none') return
  const owner = path.startsWith('/v1/stacks/') ? params.stack_key : path.startsWith('/v1/people') ? people : undefined
  if (fields === 'shown') {
    if (owner !== undefined && !rights.byOwner.has(owner)) throwClosed(owner)
    return
  }
  if (fields) {
    requireEach(fields, accessOfOwner(caller, people))
    return
  }
  if (owner === undefined ? rights.isWhole : accessOfOwner(caller, owner) === undefined) return
  const needed = owner === undefined ? 'all fields of people and of all stacks' : `all fields of ${owner}`
  refuse('forbidden', `This endpoint needs a role that may read and write ${needed}.`)
}

function requireEach(names: readonly string[], access: FieldAccess | undefined): void {
  const closed = names.filter(name => !mayRead(access, name))
  if (closed.length > 0)
    refuse('forbidden', `This endpoint needs a role that may read these fields of people: ${closed.join(', ')}.`)
}

function throwClosed(owner: string): never {
  refuse('forbidden', `The role of the caller closes ${owner === people ? people : `the stack ${owner}`}.`)
}
