import { changeOperations, changeSubjects } from '@kith/client'
import { addressReader, oneOf, text } from '../app/search-params.ts'

/** The changes of the page, from its address. `entity` is an identifier of one person or record. */
export const validateChangesSearch = addressReader({
  subject: oneOf(changeSubjects),
  operation: oneOf(changeOperations),
  stack: text,
  entity: text,
})
export type ChangesSearch = ReturnType<typeof validateChangesSearch>
