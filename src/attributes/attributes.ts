import type { Transaction } from '../db/db.ts'
import { pointer, refuse } from '../errors.ts'
import {
  type Author,
  changeDefinitions,
  differences,
  nextId,
  throwIfLimitReached,
  throwInvalidField,
  throwKeyTaken,
} from '../organizations/change-definitions.ts'
import { type Attribute, type Definitions, peopleKey, peopleStackId } from '../organizations/definitions.ts'
import { indexIdOf, indexState } from './indexing.ts'
import { coerceRules, findRuleFaults, noRules, rulesOf } from './rules.ts'
import type { AttributePatch, NewAttribute } from './schema.ts'
import { insertAttributeSql, updateAttributeSql } from './sql.ts'
import { checkUnique } from './unique.ts'

/** The attribute with that id. Throws a Fault of 404 if there is none. */
export function findAttribute({ attributeById }: Definitions, id: number): Attribute {
  return attributeById.get(id) ?? refuse('not_found', 'There is no such attribute.')
}

/** Declares an attribute. Throws a Fault of 400 or 409 if the body breaks a rule. */
export async function createAttribute(
  author: Author,
  given: NewAttribute,
  options: DeclareOptions = {},
): Promise<AttributeWithDefinitions> {
  let id = 0
  const body = options.boundFrom === 'query' ? coerceRules(given.type, given) : given
  const definitions = await changeDefinitions(author, async (current, at, tx) => {
    const owner_stack_id =
      stackIdOf(current, body.owner) ?? throwInvalidField('/owner', 'must be `people` or the key of a stack')
    const target_stack_id = targetOf(current, body)
    const { key, type, name = key, description = null, cardinality = 'one', indexed = false, searchable = false } = body
    throwIfUnindexable(type, indexed)
    throwIfUnsearchable(type, searchable)
    const rules = rulesOf(body)
    throwIfRulesFault({ type, cardinality, indexed, ...rules })
    if (current.declared.get(owner_stack_id)?.has(key)) throwKeyTaken('is already declared for this owner')
    throwIfLimitReached('attributes', current, author.limits)
    id = nextId(current.attributes)
    const after = {
      owner: body.owner,
      key,
      name,
      description,
      type,
      target_stack: body.target_stack ?? null,
      cardinality,
      indexed,
      searchable,
      ...rules,
    }
    const index_id = indexIdOf(current, { indexed, target_stack_id, state: 'active' })
    const isReady =
      rules.unique === true && (await checkUnique(tx, current, { owner_stack_id, key, index_id }, options.mayRead))
    const values = [
      author.organization_id,
      id,
      owner_stack_id,
      key,
      name,
      description,
      type,
      target_stack_id,
      cardinality,
      indexed,
      at,
      index_id,
      isReady,
      JSON.stringify(rules),
      searchable,
    ]
    const store = () => tx.query(insertAttributeSql, values)
    return [{ subject: 'attribute', id, operation: 'create', before: {}, after, store }]
  })
  return { attribute: findAttribute(definitions, id), definitions }
}

/** Where the body comes from, and whether the author may read the values of the owner: a refusal then names those that repeat. */
export type DeclareOptions = { boundFrom?: 'body' | 'query'; mayRead?: (stack_id: number) => boolean }

/** An attribute, and the definitions after the change. */
type AttributeWithDefinitions = { attribute: Attribute; definitions: Definitions }

/** Changes or archives an attribute. Throws a Fault of 400, 404 or 409. */
export async function patchAttribute(
  author: Author,
  id: number,
  patch: AttributePatch,
  options: DeclareOptions = {},
): Promise<AttributeWithDefinitions> {
  const definitions = await changeDefinitions(author, async (current, at, tx) => {
    const attribute: Attribute = { ...noRules, ...findAttribute(current, id) }
    const given = options.boundFrom === 'query' ? coerceRules(attribute.type, patch) : patch
    const changed = differences<Attribute>(attribute, given as Partial<Attribute>)
    if (!changed) return []
    const next: Attribute = { ...attribute, ...changed.after }
    if (attribute.cardinality === 'many' && next.cardinality === 'one')
      throwInvalidField('/cardinality', 'cannot change from `many` to `one`')
    throwIfUnindexable(next.type, next.indexed)
    throwIfUnsearchable(next.type, next.searchable)
    const sameKey = current.declared.get(next.owner_stack_id)?.get(next.key)
    if (next.state === 'active' && sameKey && sameKey.id !== id)
      throwKeyTaken('is already declared again for this owner')
    throwIfRulesFault(next)
    const { name, description, cardinality, indexed, searchable = false, state } = next
    const index_id = indexIdOf(current, next)
    const isReady = await becomesReady(tx, current, { before: attribute, next: { ...next, index_id } }, options)
    const index = [index_id, isReady, JSON.stringify(rulesOf(next)), searchable] as const
    const values = [author.organization_id, id, name, description, cardinality, indexed, state, at, ...index]
    const store = () => tx.query(updateAttributeSql, values)
    return [{ subject: 'attribute', id, operation: 'update', ...changed, store }]
  })
  return { attribute: findAttribute(definitions, id), definitions }
}

/** Checks the stored values if the attribute becomes unique. Returns whether its index needs no fill. */
async function becomesReady(
  tx: Transaction,
  current: Definitions,
  { before, next }: { before: Attribute; next: Attribute & { index_id: number | null } },
  { mayRead }: DeclareOptions,
): Promise<boolean> {
  if (!next.unique || next.state !== 'active') return false
  if (before.unique && before.index?.id === next.index_id) return false
  return checkUnique(tx, current, { ...next, isReactivated: before.state === 'archived' }, mayRead)
}

function throwIfRulesFault(attribute: Parameters<typeof findRuleFaults>[0]) {
  const details = findRuleFaults(attribute).map(({ path, message }) => ({ path: pointer(...path), message }))
  if (details.length > 0) refuse('invalid_parameter', 'The request breaks a rule.', { details })
}

function stackIdOf({ stacks }: Definitions, key: string): number | undefined {
  return key === peopleKey ? peopleStackId : stacks.find(stack => stack.key === key)?.id
}

function targetOf(definitions: Definitions, { type, target_stack }: NewAttribute): number | null {
  if (type !== 'stack' && target_stack) throwInvalidField('/target_stack', 'applies only to type `stack`')
  if (type === 'person') return peopleStackId
  if (type !== 'stack') return null
  if (!target_stack) throwInvalidField('/target_stack', 'is required for type `stack`')
  return (
    definitions.stacks.find(stack => stack.key === target_stack)?.id ??
    throwInvalidField('/target_stack', 'must be the key of a stack')
  )
}

function throwIfUnindexable(type: string, indexed: boolean) {
  if (type === 'json' && indexed) throwInvalidField('/indexed', 'cannot be true for type `json`, which has no order')
}

function throwIfUnsearchable(type: string, searchable = false) {
  if (searchable && type !== 'text') throwInvalidField('/searchable', 'can be true only for type `text`')
}

function keyOf({ stacks }: Definitions, stack_id: number): string {
  return stack_id === peopleStackId ? peopleKey : stacks.find(stack => stack.id === stack_id)!.key
}

/** An attribute as a read shows it. Stacks are named by their keys. */
export function attributeToJson(attribute: Attribute, definitions: Definitions) {
  const { id, key, name, description, owner_stack_id, type, target_stack_id, cardinality, indexed, state } = attribute
  return {
    id,
    key,
    name,
    description,
    owner: keyOf(definitions, owner_stack_id),
    type,
    target_stack: type === 'stack' ? keyOf(definitions, target_stack_id!) : null,
    cardinality,
    indexed,
    index_state: indexState(attribute),
    searchable: attribute.searchable ?? false,
    ...noRules,
    ...rulesOf(attribute),
    state,
    created_at: attribute.created_at,
    updated_at: attribute.updated_at,
  }
}
