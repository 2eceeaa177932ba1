import { refuse } from '../values/errors.ts'
import type { Call } from './call.ts'
import { accessOfOwner, type FieldAccess, mayRead } from './field-rights.ts'
import type { Route } from './route.ts'

const people = 'people'

/** Throws a Fault of 403 unless the role of the caller opens the fields that the row needs, see `fields` of the route table. */
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
