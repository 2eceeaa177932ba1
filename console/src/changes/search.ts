import type { Change } from '@kith/client'

// The types of the client demand each member, so a subject or an operation that is new there cannot be missing here.
const subjectSet: Record<Change['subject'], true> = {
  person: true,
  record: true,
  stack: true,
  attribute: true,
  consent_type: true,
  webhook: true,
  settings: true,
  segment: true,
}
const operationSet: Record<Change['operation'], true> = {
  create: true,
  update: true,
  delete: true,
  restore: true,
  merge: true,
  unmerge: true,
  erase: true,
}
export const subjects = Object.keys(subjectSet) as Change['subject'][]
export const operations = Object.keys(operationSet) as Change['operation'][]

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
