import { peopleStackId } from '../organizations/definitions.ts'
import { accessOf, isOpen, mayRead, type Rights, requireOpen, requireReadable } from '../route/field-rights.ts'
import { phoneColumns, wordColumns } from '../values/profile-fields.ts'

/** A stack, and the keys of its searchable attributes. */
type SearchedFields = { stack_id: number; keys: readonly string[] }

/** The fields that a search of a stack reads. Its results and their order would reveal the values of closed fields. */
const searchedFields = ({ stack_id, keys }: SearchedFields): string[] => [
  ...(stack_id === peopleStackId ? [...wordColumns, ...phoneColumns] : []),
  ...keys.map(key => `attribute_values.${key}`),
]

/** Whether the caller's role opens every field that a search of a stack reads. */
export const isSearchable = (caller: Rights, searched: SearchedFields): boolean =>
  isOpen(caller, searched.stack_id) &&
  searchedFields(searched).every(name => mayRead(accessOf(caller, searched.stack_id), name))

/**
 * Throws a Fault of 403 unless the caller's role opens every field that a search of a stack reads. `path` is the path
 * of the owner in the request.
 */
export function requireSearchable(caller: Rights, searched: SearchedFields, path: string): void {
  requireOpen(caller, searched.stack_id, path)
  const access = accessOf(caller, searched.stack_id)
  for (const name of searchedFields(searched)) requireReadable(access, name, path)
}
