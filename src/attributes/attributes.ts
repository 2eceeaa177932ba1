import { refuse } from '../errors.ts'
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
import type { AttributePatch, NewAttribute } from './schema.ts'
import { insertAttributeSql, updateAttributeSql } from './sql.ts'

/** The attribute with that id. Throws a Fault of 404 if there is none. */
export function findAttribute({ attributeById }: Definitions, id: number): Attribute {
  return attributeById.get(id) ?? refuse('not_found', 'There is no such attribute.')
}

/** Declares an attribute. Throws a Fault of 400 or 409 if the body breaks a rule. */
export async function createAttribute(author: Author, body: NewAttribute): Promise<AttributeWithDefinitions> {
  let id = 0
  const definitions = await changeDefinitions(author, (current, at) => {
    const owner_stack_id =
      stackIdOf(current, body.owner) ?? throwInvalidField('/owner', 'must be `people` or the key of a stack')
    const target_stack_id = targetOf(current, body)
    const { key, type, name = key, description = null, cardinality = 'one', indexed = false } = body
    throwIfUnindexable(type, indexed)
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
    }
    const index_id = indexIdOf(current, { indexed, target_stack_id, state: 'active' })
    const values = [
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
    ]
    return [{ subject: 'attribute', id, operation: 'create', before: {}, after, store: insertAttributeSql, values }]
  })
  return { attribute: findAttribute(definitions, id), definitions }
}

/** An attribute, and the definitions after the change. */
type AttributeWithDefinitions = { attribute: Attribute; definitions: Definitions }

/** Changes or archives an attribute. Throws a Fault of 400, 404 or 409. */
export async function patchAttribute(
  author: Author,
  id: number,
  patch: AttributePatch,
): Promise<AttributeWithDefinitions> {
  const definitions = await changeDefinitions(author, (current, at) => {
    const attribute = findAttribute(current, id)
    const changed = differences<Attribute>(attribute, patch as Partial<Attribute>)
    if (!changed) return []
    const next: Attribute = { ...attribute, ...changed.after }
    if (attribute.cardinality === 'many' && next.cardinality === 'one')
      throwInvalidField('/cardinality', 'cannot change from `many` to `one`')
    throwIfUnindexable(next.type, next.indexed)
    const sameKey = current.declared.get(next.owner_stack_id)?.get(next.key)
    if (next.state === 'active' && sameKey && sameKey.id !== id)
      throwKeyTaken('is already declared again for this owner')
    const { name, description, cardinality, indexed, state } = next
    const values = [id, name, description, cardinality, indexed, state, at, indexIdOf(current, next)]
    return [{ subject: 'attribute', id, operation: 'update', ...changed, store: updateAttributeSql, values }]
  })
  return { attribute: findAttribute(definitions, id), definitions }
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
    state,
    created_at: attribute.created_at,
    updated_at: attribute.updated_at,
  }
}
