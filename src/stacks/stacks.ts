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
import { type Definitions, peopleKey, type Stack } from '../organizations/definitions.ts'
import type { NewStack, StackPatch } from './schema.ts'
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
export async function createStack(author: Author, body: NewStack): Promise<Stack> {
  if (body.key === peopleKey) throwInvalidField('/key', 'is reserved: people are not a stack')
  const after = await changeDefinitions(author, (current, at) => {
    const { stacks } = current
    if (stacks.some(stack => stack.key === body.key)) throwKeyTaken('is the key of another stack')
    throwIfLimitReached('stacks', current, author.limits)
    const id = nextId(stacks)
    const stack = { key: body.key, name: body.name ?? body.key, kind: body.kind }
    const values = [id, stack.key, stack.name, stack.kind, at]
    return [{ subject: 'stack', id, operation: 'create', before: {}, after: stack, store: insertStackSql, values }]
  })
  return findStack(after, body.key)
}

/** Renames a stack. Throws a Fault of 404 if there is none with that key. */
export async function patchStack(author: Author, key: string, patch: StackPatch): Promise<Stack> {
  const after = await changeDefinitions(author, (definitions, at) => {
    const stack = findStack(definitions, key)
    const changed = differences(stack, patch)
    if (!changed) return []
    const values = [stack.id, { ...stack, ...patch }.name, at]
    return [{ subject: 'stack', id: stack.id, operation: 'update', ...changed, store: updateStackSql, values }]
  })
  return findStack(after, key)
}

/** A stack as a read shows it. */
export function stackToJson({ key, name, kind, created_at, updated_at }: Stack) {
  return { key, name, kind, created_at, updated_at }
}
