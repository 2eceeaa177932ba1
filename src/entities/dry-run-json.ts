import type { Call } from '../route/call.ts'
import { closeValues } from '../route/closed-fields.ts'
import { accessOf, type FieldAccess, mayRead } from '../route/field-rights.ts'
import type { EntityKind } from './entity-kind.ts'
import type { Done, WritePreview } from './write-request.ts'

/**
 * Returns the response of a dry run, without the fields that the role of the caller cannot read. A token that may not read the entity
 * receives the result and the identifiers.
 */
export function dryRunToJson(
  { identifier, reads }: Pick<EntityKind, 'identifier' | 'reads'>,
  caller: Pick<Call['caller'], 'scopes' | 'rights'>,
  stack_id: number,
  { result, id, external_id, version, preview }: Done,
): object {
  const { isNew, ...diff } = preview!
  const identifiers = { dry_run: true, result, id: isNew ? null : identifier.fromUuid(id), external_id }
  if (!caller.scopes.has(reads)) return identifiers
  const access = accessOf(caller, stack_id)
  return { ...identifiers, version, ...(access ? closeDiff(diff, access) : diff) }
}

function closeDiff({ before, after, consents, placeholders }: Omit<WritePreview, 'isNew'>, access: FieldAccess) {
  const close = (values: Record<string, unknown> | null) => values && closeValues(values, access)
  const shownConsents = mayRead(access, 'consents') ? consents : []
  return { before: close(before), after: close(after), placeholders, consents: shownConsents }
}
