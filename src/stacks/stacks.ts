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
  type Definitions,
  peopleKey,
  peopleStackId,
  type Stack,
  type StackSummary,
} from '../organizations/definitions.ts'
import { pointer, refuse, throwBrokenRule } from '../values/errors.ts'
import { findLabelFault, parseLabel } from './label.ts'
import type { StackBody, StackPatch } from './schema.ts'
import { insertStackSql, updateStackSql } from './sql.ts'

/** Returns the stack with that key. Throws a Fault of 404 if there is none. */
export function findStack({ stacks }: Definitions, key: string): Stack {
  const details = [{ path: pointer('stack_key'), message: 'is not the key of a stack' }]
  return (
    stacks.find(stack => stack.key === key) ??
    refuse('not_found', `There is no such stack: ${JSON.stringify(key)}.`, { details })
  )
}

/** Creates a stack. Throws a Fault of 400 or 409 if the body breaks a rule. */
export async function createStack(call: DefinitionCall, body: StackBody): Promise<Stack> {
  throwUnlessEvents(body.kind, body.retention_days)
  throwIfMalformed(body.label ?? null)
  if (body.key === peopleKey) throwBrokenRule('/key', 'is reserved: people are not a stack. Choose another key')
  const after = await changeDefinitions(call, (current, at) => {
    if (current.stacks.some(stack => stack.key === body.key)) throwKeyTaken('is the key of another stack')
    throwIfLimitReached('stacks', current, call.limits)
    return [creationOfStack(nextId(current.stacks), body, at)]
  })
  return findStack(after, body.key)
}

/** The creation of a stack, for the log and the table. */
export function creationOfStack(id: number, body: StackBody, at: string): DefinitionChange {
  const { key, kind, name = key, retention_days = null, label = null, erased_with = null } = body
  const summary = body.summary ? inStoredOrder(body.summary) : null
  const values = [key, name, kind, retention_days, label, summary && JSON.stringify(summary), erased_with, at]
  return {
    ...{ subject: 'stack', id, operation: 'create', before: {} },
    after: { key, name, kind, retention_days, label, summary, erased_with },
    store: (version, { tx, organization_id }) => tx.query(insertStackSql, [organization_id, id, ...values, version]),
  }
}

/**
 * Changes the name of a stack or the settings of its records. Throws a Fault of 404 for an unknown key, and of 400 for
 * an invalid retention or an undeclared name.
 */
export async function patchStack(call: DefinitionCall, key: string, patch: StackPatch): Promise<Stack> {
  const after = await changeDefinitions(call, (definitions, at, tx) => {
    const stack = findStack(definitions, key)
    throwUnlessEvents(stack.kind, patch.retention_days)
    const changed = differences(stack, patch.summary ? { ...patch, summary: inStoredOrder(patch.summary) } : patch)
    if (!changed) return []
    const { label: newLabel, summary: newSummary, erased_with: newErasedWith } = changed.after
    if (newLabel) throwIfFault('/label', findLabelFault(newLabel, stack.id, definitions))
    const declared = definitions.declared.get(stack.id)
    if (newSummary) throwIfFault('/summary', findSummaryFault(newSummary, declared))
    if (newErasedWith) throwIfFault('/erased_with', findErasedWithFault(newErasedWith, declared))
    const { name, retention_days, label, summary, erased_with } = { ...stack, ...changed.after }
    const printed = summary && JSON.stringify(summary)
    const values = [call.organization_id, stack.id, name, retention_days, label, printed, erased_with, at]
    const store = (version: number) => tx.query(updateStackSql, [...values, version])
    return [{ subject: 'stack', id: stack.id, operation: 'update', ...changed, store }]
  })
  return findStack(after, key)
}

/**
 * Refuses a retention of an item stack. Its records change as long as they are used, so their age does not show when
 * they may be deleted.
 */
function throwUnlessEvents(kind: Stack['kind'], retention_days: number | null | undefined) {
  if (kind === 'item' && typeof retention_days === 'number')
    throwBrokenRule('/retention_days', 'applies to event stacks only; this is an item stack')
}

/** Checks only the form of a new stack's label, because the stack has no attributes yet. */
function throwIfMalformed(label: string | null) {
  const parsed = label === null ? undefined : parseLabel(label)
  if (parsed && 'fault' in parsed) throwBrokenRule('/label', parsed.fault)
}

function throwIfFault(path: string, fault: string | undefined) {
  if (fault) throwBrokenRule(path, fault)
}

/** A stack as a read shows it. */
export function stackToJson(stack: Stack) {
  const { key, name, kind, retention_days, label, summary, erased_with, created_at, updated_at } = stack
  return { key, name, kind, retention_days, label, summary, erased_with, created_at, updated_at }
}

type Declared = ReadonlyMap<string, Attribute> | undefined

/** A summary with its members in the order of the database, so that equal summaries have equal texts. */
export const inStoredOrder = ({ time = null, person, measures }: StackSummary): StackSummary => ({
  time,
  person,
  measures: measures.map(({ op, key }) => ({ op, ...(key !== undefined && { key }) })),
})

/** Finds a name in a summary that is not declared as required. */
export function findSummaryFault({ person, time, measures }: StackSummary, declared: Declared): string | undefined {
  const ofType = (key: string, types: readonly Attribute['type'][], what: string) => {
    const attribute = declared?.get(key)
    return attribute && types.includes(attribute.type) ? undefined : `names ${key}, which is not ${what} of the stack`
  }
  return [
    ofType(person, ['person'], 'a relationship to people'),
    time ? ofType(time, ['date', 'datetime'], 'a date or time') : undefined,
    ...measures.map(({ op, key }) => {
      if (key !== undefined) return ofType(key, ['number'], 'a number')
      return op === 'count' ? undefined : `has a ${op} without a key: name a number of the stack`
    }),
  ].find(fault => fault !== undefined)
}

/** Returns the reason why a key cannot be the relationship that erases records. Undefined if it can. */
function findErasedWithFault(key: string, declared: Declared): string | undefined {
  if (declared?.get(key)?.target_stack_id === peopleStackId) return undefined
  return `names ${key}, which is not a relationship to people of the stack`
}
