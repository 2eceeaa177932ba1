import { setImmediate } from 'node:timers/promises'
import type { Transaction } from '../db/db.ts'
import {
  changeDefinitions,
  type DefinitionCall,
  type DefinitionChange,
  differences,
  nextId,
  throwIfLimitReached,
  throwKeyTaken,
} from '../organizations/change-definitions.ts'
import {
  type Attribute,
  cachedDefinitions,
  type Definitions,
  ownerOf,
  peopleKey,
  peopleStackId,
} from '../organizations/definitions.ts'
import { noRules } from '../values/attribute-rules.ts'
import { Fault, pointer, type Refusal, refuse, throwBrokenRule } from '../values/errors.ts'
import { indexIdOf, indexState } from './indexing.ts'
import { coerceRules, findRuleFaults, rulesOf } from './rules.ts'
import type { AttributeBody, AttributePatch } from './schema.ts'
import { insertAttributesSql, updateAttributeSql } from './sql.ts'
import { checkNewUnique, checkUnique } from './unique.ts'

/** The attribute with that id. Throws a Fault of 404 if it does not exist. */
export function findAttribute({ attributeById }: Definitions, id: number): Attribute {
  return attributeById.get(id) ?? refuse('not_found', 'There is no such attribute.')
}

/**
 * The source of the body, and whether the author may read the values of the owner. If so, a refusal names the repeated
 * values.
 */
export type DeclareOptions = { boundFrom?: 'body' | 'query'; mayRead?: (stack_id: number) => boolean }

/** Declares an attribute, and returns it as in a read. Throws a Fault of 400 or 409 if the body breaks a rule. */
export async function createAttribute(
  call: DefinitionCall,
  given: AttributeBody,
  options: DeclareOptions = {},
): Promise<ShownAttribute> {
  const body = options.boundFrom === 'query' ? coerceRules(given.type, given) : given
  const [attribute] = await declare(call, [{ body, path: '' }])
  return attribute!
}

/**
 * Declares attributes, all or none. Throws a Fault of 400 or 409 with each element that breaks a rule. No two elements
 * have the same owner and key.
 */
export const createAttributes = (call: DefinitionCall, bodies: readonly AttributeBody[]): Promise<ShownAttribute[]> =>
  declare(
    call,
    bodies.map((body, index) => ({ body, path: pointer('items', index) })),
  )

/** The body of a new attribute, and its path in the request. */
type Declaration = { body: AttributeBody; path: string }

async function declare(call: DefinitionCall, declarations: readonly Declaration[]): Promise<ShownAttribute[]> {
  const known = await cachedDefinitions(call, call.signal)
  throwIfLimitReached('attributes', known, call.limits, declarations.length)
  await checkForms(declarations)
  let firstId = 0
  const definitions = await changeDefinitions(call, async (current, at, tx) => {
    firstId = nextId(current.attributes)
    const stackIds = new Map([[peopleKey, peopleStackId], ...current.stacks.map(({ key, id }) => [key, id] as const)])
    const faults = new CollectedFaults()
    const creations = declarations.flatMap(({ body, path }, index) => {
      const numbers = { id: firstId + index, version: current.version + 1 + index }
      return faults.collect(path, () => creationOf(current, stackIds, body, numbers)) ?? []
    })
    faults.throwIfAny()
    throwIfLimitReached('attributes', current, call.limits, declarations.length)
    const placed = creations.map(({ row }, index) => ({ ...row, path: declarations[index]!.path }))
    const unique = placed.filter(({ rules }) => rules.unique)
    await checkNewUnique(tx, current, unique)
    return storedTogether(tx, current, at, creations)
  })
  return declarations.map((_, index) => attributeToJson(findAttribute(definitions, firstId + index), definitions))
}

type Creation = ReturnType<typeof creationOf>

/** The changes of new attributes, stored by one statement. */
function storedTogether(tx: Transaction, { organization_id }: Definitions, at: string, creations: readonly Creation[]) {
  const rows = JSON.stringify(creations.map(({ row }) => row))
  const store = () => tx.query(insertAttributesSql, [organization_id, rows, at])
  return creations.map(({ change }, index) => (index === 0 ? { ...change, store } : change))
}

type OfNewStack = { current: Definitions; at: string; stackIds: ReadonlyMap<string, number>; version: number }

/**
 * The changes that declare attributes together with the creation of their stack. The first change makes `version` of
 * the definitions.
 */
export function creationOfAttributes(
  tx: Transaction,
  { current, at, stackIds, version }: OfNewStack,
  bodies: readonly AttributeBody[],
): DefinitionChange[] {
  const firstId = nextId(current.attributes)
  const creations = bodies.map((body, index) =>
    creationOf(current, stackIds, body, { id: firstId + index, version: version + index }),
  )
  return storedTogether(tx, current, at, creations)
}

/** The check yields to other requests after this many patterns. The slowest patterns take a millisecond to compile. */
const patternsPerTurn = 20

/** Checks the rules that do not depend on the definitions, before the head is locked. Throws a Fault of 400. */
async function checkForms(declarations: readonly Declaration[]): Promise<void> {
  const faults = new CollectedFaults()
  let patterns = 0
  for (const { body, path } of declarations) {
    faults.collect(path, () => throwIfFormFaults(body))
    if (body.pattern != null && ++patterns % patternsPerTurn === 0) await setImmediate()
  }
  faults.throwIfAny()
}

function throwIfFormFaults(body: AttributeBody) {
  const { type, target_stack, cardinality = 'one', indexed = false, searchable = false } = body
  if (type !== 'stack' && target_stack) throwBrokenRule('/target_stack', 'applies only to type `stack`')
  if (type === 'stack' && !target_stack) throwBrokenRule('/target_stack', 'is required for type `stack`')
  throwIfUnindexable(type, indexed)
  throwIfUnsearchable(type, searchable)
  throwIfRulesFault({ type, cardinality, indexed, ...rulesOf(body) })
}

/**
 * The row of a new attribute, and its entry in the change log. Throws a Fault of 400 or 409 for rules that depend on
 * the definitions.
 */
function creationOf(
  current: Definitions,
  stackIds: ReadonlyMap<string, number>,
  body: AttributeBody,
  { id, version }: { id: number; version: number },
) {
  const { owner, target_stack = null, key, type, name = key, description = null } = body
  const { cardinality = 'one', indexed = false, searchable = false } = body
  const owner_stack_id = stackIds.get(owner) ?? throwBrokenRule('/owner', 'must be `people` or the key of a stack')
  const target_stack_id = type === 'person' ? peopleStackId : targetOf(stackIds, target_stack)
  if (current.declared.get(owner_stack_id)?.has(key)) throwKeyTaken('is already declared for this owner')
  const rules = rulesOf(body)
  const index_id = indexIdOf(version, { indexed, target_stack_id, state: 'active' })
  const shared = { key, name, description, type, cardinality, indexed, searchable }
  const row = {
    ...{ id, owner_stack_id, target_stack_id, index_id, rules, version, ...shared },
    // A unique attribute has no stored values, so its index needs no fill.
    index_ready: rules.unique === true,
  }
  const after = { owner, ...shared, target_stack, ...rules }
  const change: DefinitionChange = { subject: 'attribute', id, operation: 'create', before: {}, after }
  return { row, change }
}

function targetOf(stackIds: ReadonlyMap<string, number>, target_stack: string | null): number | null {
  if (target_stack === null) return null
  const id = stackIds.get(target_stack)
  return id === undefined || id === peopleStackId ? throwBrokenRule('/target_stack', 'must be the key of a stack') : id
}

/** Changes or archives an attribute, and returns it as in a read. Throws a Fault of 400, 404 or 409. */
export async function patchAttribute(
  call: DefinitionCall,
  id: number,
  patch: AttributePatch,
  options: DeclareOptions = {},
): Promise<ShownAttribute> {
  const definitions = await changeDefinitions(call, async (current, at, tx) => {
    const attribute: Attribute = { ...noRules, ...findAttribute(current, id) }
    const given = options.boundFrom === 'query' ? coerceRules(attribute.type, patch) : patch
    const changed = differences<Attribute>(attribute, given as Partial<Attribute>)
    if (!changed) return []
    const next: Attribute = { ...attribute, ...changed.after }
    if (attribute.cardinality === 'many' && next.cardinality === 'one')
      throwBrokenRule(
        '/cardinality',
        'cannot change from `many` to `one`: archive the attribute and declare the key again',
      )
    throwIfUnindexable(next.type, next.indexed)
    throwIfUnsearchable(next.type, next.searchable)
    const sameKey = current.declared.get(next.owner_stack_id)?.get(next.key)
    if (next.state === 'active' && sameKey && sameKey.id !== id)
      throwKeyTaken('is already declared again for this owner')
    throwIfRulesFault(next)
    const { name, description, cardinality, indexed, searchable = false, state } = next
    const index_id = indexIdOf(current.version + 1, next)
    const isReady = await becomesReady(tx, current, { before: attribute, next: { ...next, index_id } }, options)
    const index = [index_id, isReady, JSON.stringify(rulesOf(next)), searchable] as const
    const values = [call.organization_id, id, name, description, cardinality, indexed, state, at, ...index]
    const store = (version: number) => tx.query(updateAttributeSql, [...values, version])
    return [{ subject: 'attribute', id, operation: 'update', ...changed, store }]
  })
  return attributeToJson(findAttribute(definitions, id), definitions)
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

function throwIfUnindexable(type: string, indexed: boolean) {
  if (type === 'json' && indexed)
    throwBrokenRule('/indexed', 'cannot be true for type `json`, which has no order: index a value of its own key')
}

function throwIfUnsearchable(type: string, searchable = false) {
  if (searchable && type !== 'text') throwBrokenRule('/searchable', 'can be true only for type `text`')
}

type ShownAttribute = ReturnType<typeof attributeToJson>

/** An attribute as in a read. Stacks are named by their keys. */
export function attributeToJson(attribute: Attribute, definitions: Definitions) {
  const { id, key, name, description, owner_stack_id, type, target_stack_id, cardinality, indexed, state } = attribute
  return {
    id,
    key,
    name,
    description,
    owner: ownerOf(definitions, owner_stack_id),
    type,
    target_stack: type === 'stack' ? ownerOf(definitions, target_stack_id!) : null,
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

const maxDetails = 100

/** Collects the refusals of the elements of a request, so that one response reports the faults of all elements. */
class CollectedFaults {
  readonly #refusals: Refusal[] = []

  /** Returns the result of the check of the element at `path`. Undefined if it throws a Fault. */
  collect<R>(path: string, check: () => R): R | undefined {
    try {
      return check()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const details = error.refusal.details.map(detail => ({ ...detail, path: path + detail.path }))
      this.#refusals.push({ ...error.refusal, details })
      return undefined
    }
  }

  /** Throws the first refusal, with the details of all refusals that have its code, at most 100. */
  throwIfAny(): void {
    const [first] = this.#refusals
    if (!first) return
    const details = this.#refusals.filter(({ code }) => code === first.code).flatMap(refusal => refusal.details)
    throw new Fault({ ...first, details: details.slice(0, maxDetails) })
  }
}
