import { peopleStackId } from '../organizations/definitions.ts'
import { accessOf, type Rights, requireOpen, requireReadable } from '../route/field-rights.ts'
import { phoneColumns, wordColumns } from '../values/profile-fields.ts'

/**
 * Throws a Fault of 403 unless the role of the caller opens every field that a search of a stack looks at. Who is found, and in which
 * order, would otherwise tell of closed fields. `path` is the place of the owner in the request.
 */
export function requireSearchable(
  caller: Rights,
  { stack_id, keys }: { stack_id: number; keys: readonly string[] },
  path: string,
): void {
  requireOpen(caller, stack_id, path)
  const access = accessOf(caller, stack_id)
  const names = stack_id === peopleStackId ? [...wordColumns, ...phoneColumns] : []
  for (const name of [...names, ...keys.map(key => `attribute_values.${key}`)]) requireReadable(access, name, path)
}
