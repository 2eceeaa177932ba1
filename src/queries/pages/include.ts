import { type Included, type Relationship, readIncluded } from '../../entities/read/included.ts'
import {
  cachedDefinitions,
  currentDefinitions,
  type Definitions,
  isRelationship,
  readScopeOf,
} from '../../organizations/definitions.ts'
import type { Call } from '../../route/call.ts'
import { accessOf, type FieldAccess, mayRead, requireOpen, requireReadable } from '../../route/field-rights.ts'
import { requireScope } from '../../route/scopes.ts'
import { didYouMean, maxHints } from '../../values/did-you-mean.ts'
import { type Detail, pointer, refuse } from '../../values/errors.ts'

/**
 * Checks `include` of a request: keys of active relationships of the stack. Returns how to read the entities that a
 * page includes. Throws a Fault of 400 with the path of any other key, and of 403 if the token may not read the targets
 * of a relationship.
 */
export async function includer(
  { context, caller, signal, shown }: Call<unknown>,
  stack_id: number,
  { keys, isById }: { keys: readonly string[]; isById: boolean },
): Promise<(ids: readonly string[]) => Promise<Included>> {
  const access = accessOf(caller, stack_id)
  const resolve = (definitions: Definitions) => {
    const { relationships, details } = relationshipsOf(keys, definitions, stack_id, access)
    if (details.length > 0) refuse('invalid_parameter', 'The request includes what is no relationship.', { details })
    for (const [index, { target_stack_id, key }] of relationships.entries()) {
      requireScope(caller, readScopeOf(target_stack_id))
      requireOpen(caller, target_stack_id, pointer('include', index))
      requireReadable(access, `attribute_values.${key}`, pointer('include', index))
    }
    return { relationships, version: definitions.version }
  }
  const cached = await cachedDefinitions(context, signal)
  const isKnown = relationshipsOf(keys, cached, stack_id, access).details.length === 0
  let resolved = resolve(isKnown ? cached : await currentDefinitions(context, signal))
  return async ids => {
    for (;;) {
      const { relationships } = resolved
      const { included, definitions } = await readIncluded(
        context,
        { relationships, isById, caller, shown },
        ids,
        signal,
      )
      if (definitions.version <= resolved.version) return included
      // The relationship may have been archived or redeclared in the meantime.
      resolved = resolve(definitions)
    }
  }
}

function relationshipsOf(
  keys: readonly string[],
  { declared }: Definitions,
  stack_id: number,
  access: FieldAccess | undefined,
): { relationships: Relationship[]; details: Detail[] } {
  const relationships: Relationship[] = []
  const details: Detail[] = []
  const hintOf = (key: string) => {
    const known = [...(declared.get(stack_id)?.values() ?? [])].filter(isRelationship).map(each => each.key)
    const readable = known.filter(each => mayRead(access, `attribute_values.${each}`))
    return details.length < maxHints ? didYouMean(key, readable) : ''
  }
  for (const [index, key] of keys.entries()) {
    const fault = (message: string) => details.push({ path: pointer('include', index), message })
    const attribute = declared.get(stack_id)?.get(key)
    if (keys.indexOf(key) < index) fault('occurs twice')
    else if (!attribute) fault(`is not a declared attribute. Only relationships can be included${hintOf(key)}`)
    else if (!isRelationship(attribute)) fault('is not a relationship. Its value is in attribute_values')
    else relationships.push(attribute)
  }
  return { relationships, details }
}
