import { fail } from '../errors.ts'
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
import { indexOf, indexState } from './indexing.ts'
import type { AttributePatch, NewAttribute } from './schema.ts'
import { insertAttributeSql, updateAttributeSql } from './sql.ts'

/** The attribute of that id; a Fault of 404 where there is none. */
export function findAttribute({ attributeById }: Definitions, id: number): Attribute {
  return attributeById.get(id) ?? fail('not_found', 'There is no such attribute.')
}

export async function createAttribute(author: Author, body: NewAttribute): Promise<Created> {
  let id = 0
  const definitions = await changeDefinitions(author, (standing, at) => {
    const owner_stack_id =
      stackIdOf(standing, body.owner) ?? throwInvalidField('/owner', 'is neither `people` nor a stack key')
    const target_stack_id = targetOf(standing, body)
    const { key, type, name = key, description = null, cardinality = 'one', indexed = false } = body
    refuseUnindexable(type, indexed)
    if (standing.declared.get(owner_stack_id)?.has(key)) throwKeyTaken('is declared for this owner already')
    throwIfLimitReached('attributes', standing, author.limits)
    id = nextId(standing.attributes)
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
    const index_id = indexOf(standing, { indexed, target_stack_id, state: 'active' })
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

type Created = { attribute: Attribute; definitions: Definitions }

export async function patchAttribute(author: Author, id: number, patch: AttributePatch): Promise<Created> {
  const definitions = await changeDefinitions(author, (standing, at) => {
    const attribute = findAttribute(standing, id)
    const changed = differences<Attribute>(attribute, patch as Partial<Attribute>)
    if (!changed) return []
    const next: Attribute = { ...attribute, ...changed.after }
    if (attribute.cardinality === 'many' && next.cardinality === 'one')
      throwInvalidField('/cardinality', 'never goes back from `many` to `one`')
    refuseUnindexable(next.type, next.indexed)
    const namesake = standing.declared.get(next.owner_stack_id)?.get(next.key)
    if (next.state === 'active' && namesake && namesake.id !== id) throwKeyTaken('is declared anew for this owner')
    const { name, description, cardinality, indexed, state } = next
    const values = [id, name, description, cardinality, indexed, state, at, indexOf(standing, next)]
    return [{ subject: 'attribute', id, operation: 'update', ...changed, store: updateAttributeSql, values }]
  })
  return { attribute: findAttribute(definitions, id), definitions }
}

function stackIdOf({ stacks }: Definitions, key: string): number | undefined {
  return key === peopleKey ? peopleStackId : stacks.find(stack => stack.key === key)?.id
}

function targetOf(definitions: Definitions, { type, target_stack }: NewAttribute): number | null {
  if (type !== 'stack' && target_stack) throwInvalidField('/target_stack', 'belongs to type `stack` alone')
  if (type === 'person') return peopleStackId
  if (type !== 'stack') return null
  if (!target_stack) throwInvalidField('/target_stack', 'is required for type `stack`')
  return (
    definitions.stacks.find(stack => stack.key === target_stack)?.id ??
    throwInvalidField('/target_stack', 'is no stack key')
  )
}

function refuseUnindexable(type: string, indexed: boolean) {
  if (type === 'json' && indexed) throwInvalidField('/indexed', 'cannot be true for type `json`, which has no order')
}

function keyOf({ stacks }: Definitions, stack_id: number): string {
  return stack_id === peopleStackId ? peopleKey : stacks.find(stack => stack.id === stack_id)!.key
}

/** An attribute as a read shows it: stacks by their keys. */
export function shownAttribute(attribute: Attribute, definitions: Definitions) {
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
