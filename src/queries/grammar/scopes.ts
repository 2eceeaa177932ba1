import { type Definitions, readScopeOf } from '../../organizations/definitions.ts'
import { accessOf, mayRead, type Rights, requireReadable } from '../../route/field-rights.ts'
import { hintOf, nearNames } from '../../values/did-you-mean.ts'
import { attributePrefix } from '../../values/profile-fields.ts'
import { type Condition, visit } from './grammar.ts'

/** The read scopes that a filter needs, one for each kind of entity in it. */
export function scopesOf(condition: Condition, stack_id: number): Set<ReturnType<typeof readScopeOf>> {
  return new Set(visit(condition, stack_id).map(visited => readScopeOf(visited.stack_id)))
}

/**
 * Suggests a similar name for an unknown field, out of `names` and the attributes that the caller's role opens. The
 * caller must have the scope that reads the stack. Empty without a caller.
 */
export function suggestField(
  caller: Rights | undefined,
  { declared }: Definitions,
  { stack_id, name, names = [] }: { stack_id: number; name: string; names?: Iterable<string> },
): string {
  if (!caller) return ''
  const key = name.startsWith(attributePrefix) ? name.slice(attributePrefix.length) : name
  const keys = declared.get(stack_id)?.keys() ?? []
  const access = accessOf(caller, stack_id)
  const near = [...nearNames(name, names), ...nearNames(key, keys, attributePrefix)]
  return hintOf(near.filter(each => mayRead(access, each.name)))
}

/** A field that a request names, with its path. */
export type NamedField = { stack_id: number; name: string; path: string }

/** Throws a Fault of 403 for a field that the role of the caller cannot read. */
export function requireNamed(caller: Rights, named: readonly NamedField[]): void {
  if (!caller.rights) return
  for (const { stack_id, name, path } of named) requireReadable(accessOf(caller, stack_id), name, path)
}
