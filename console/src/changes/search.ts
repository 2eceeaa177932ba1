import { type Change, changeOperations, changeSubjects } from '@kith/client'

/** What the address of the page says: which changes are shown. */
export type ChangesSearch = {
  subject?: Change['subject']
  operation?: Change['operation']
  stack?: string
  /** An identifier of one person or record. */
  entity?: string
}

export function validateChangesSearch(search: Record<string, unknown>): ChangesSearch {
  const subject = changeSubjects.find(each => each === search.subject)
  const operation = changeOperations.find(each => each === search.operation)
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
  const [stack, entity] = [text(search.stack), text(search.entity)]
  return {
    ...(subject && { subject }),
    ...(operation && { operation }),
    ...(stack && { stack }),
    ...(entity && { entity }),
  }
}
