import type { Change } from '@kith/client'

export const subjects = [
  'person',
  'record',
  'stack',
  'attribute',
  'consent_type',
  'webhook',
  'settings',
  'segment',
] as const satisfies Change['subject'][]

export const operations = [
  'create',
  'update',
  'delete',
  'restore',
  'merge',
  'unmerge',
  'erase',
] as const satisfies Change['operation'][]

/** What the address of the page says: which changes are shown. */
export type ChangesSearch = {
  subject?: Change['subject']
  operation?: Change['operation']
  stack?: string
  /** The identifier of one entity. */
  entity?: string
}

export function validateChangesSearch(search: Record<string, unknown>): ChangesSearch {
  const subject = subjects.find(each => each === search.subject)
  const operation = operations.find(each => each === search.operation)
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
  const [stack, entity] = [text(search.stack), text(search.entity)]
  return {
    ...(subject && { subject }),
    ...(operation && { operation }),
    ...(stack && { stack }),
    ...(entity && { entity }),
  }
}
