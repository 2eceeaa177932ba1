import {
  changeDefinitions,
  type DefinitionCall,
  differences,
  nextId,
  throwIfLimitReached,
  throwInvalidField,
  throwKeyTaken,
} from '../organizations/change-definitions.ts'
import { type Definitions, peopleKey, type Stack } from '../organizations/definitions.ts'
import { pointer, refuse } from '../values/errors.ts'
import { findLabelFault, parseLabel } from './label.ts'
import type { StackBody, StackPatch } from './schema.ts'
import { insertStackSql, updateStackSql } from './sql.ts'

/** The stack with that key. Throws a Fault of 404 if there is none. */
export function findStack({ stacks }: Definitions, key: string): Stack {
  const details = [{ path: pointer('stack_key'), message: 'is not the key of a stack' }]
  return (
    stacks.find(stack => stack.key === key) ??
    refuse('not_found', `There is no such stack: ${JSON.stringify(key)}.`, { details })
  )
}

/** Creates a stack. Throws a Fault of 400 or 409 if the body breaks a rule. */
export async function createStack(call: DefinitionCall, body: StackBody): Promise<Stack> {
  const { kind, retention_days = null, label = null } = body
  throwUnlessEvents(kind, retention_days)
  throwIfMalformed(label)
  if (body.key === peopleKey) throwInvalidField('/key', 'is reserved: people are not a stack. Choose another key')
  const after = await changeDefinitions(call, (current, at, tx) => {
    const { stacks } = current
    if (stacks.some(stack => stack.key === body.key)) throwKeyTaken('is the key of another stack')
    throwIfLimitReached('stacks', current, call.limits)
    const id = nextId(stacks)
    const stack = { key: body.key, name: body.name ?? body.key, kind, retention_days, label }
    const values = [call.organization_id, id, stack.key, stack.name, kind, retention_days, label, at]
    const store = (version: number) => tx.query(insertStackSql, [...values, version])
    return [{ subject: 'stack', id, operation: 'create', before: {}, after: stack, store }]
  })
  return findStack(after, body.key)
}

/**
 * Changes the name, the retention or the label of a stack. Throws a Fault: 404 if there is none with that key, 400 for a wrong retention
 * or label.
 */
export async function patchStack(call: DefinitionCall, key: string, patch: StackPatch): Promise<Stack> {
  const after = await changeDefinitions(call, (definitions, at, tx) => {
    const stack = findStack(definitions, key)
    throwUnlessEvents(stack.kind, patch.retention_days)
    const changed = differences(stack, patch)
    if (!changed) return []
    if (typeof changed.after.label === 'string') throwUnlessDeclared(changed.after.label, stack, definitions)
    const { name, retention_days, label } = { ...stack, ...patch }
    const values = [call.organization_id, stack.id, name, retention_days, label, at]
    const store = (version: number) => tx.query(updateStackSql, [...values, version])
    return [{ subject: 'stack', id: stack.id, operation: 'update', ...changed, store }]
  })
  return findStack(after, key)
}

/** Records of an item stack change as long as they are used, so their age does not tell when they may go. */
function throwUnlessEvents(kind: Stack['kind'], retention_days: number | null | undefined) {
  if (kind === 'item' && typeof retention_days === 'number')
    throwInvalidField('/retention_days', 'applies to event stacks only; this is an item stack')
}

/** A new stack has no attributes yet, so the form of its label is all there is to check. */
function throwIfMalformed(label: string | null) {
  const parsed = label === null ? undefined : parseLabel(label)
  if (parsed && 'fault' in parsed) throwInvalidField('/label', parsed.fault)
}

function throwUnlessDeclared(label: string, stack: Stack, definitions: Definitions) {
  const fault = findLabelFault(label, stack.id, definitions)
  if (fault) throwInvalidField('/label', fault)
}

/** A stack as a read shows it. */
export function stackToJson({ key, name, kind, retention_days, label, created_at, updated_at }: Stack) {
  return { key, name, kind, retention_days, label, created_at, updated_at }
}
