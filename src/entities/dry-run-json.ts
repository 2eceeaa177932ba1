import type { Call } from '../route/call.ts'
import type { EntityKind } from './entity-kind.ts'
import type { Done } from './write-request.ts'

/** Returns the response of a dry run. A token that may not read the entity receives the result and the identifiers. */
export function dryRunToJson(
  { identifier, reads }: Pick<EntityKind, 'identifier' | 'reads'>,
  { scopes }: Pick<Call['caller'], 'scopes'>,
  { result, id, external_id, version, preview }: Done,
): object {
  const { isNew, ...diff } = preview!
  const identifiers = { dry_run: true, result, id: isNew ? null : identifier.fromUuid(id), external_id }
  return scopes.has(reads) ? { ...identifiers, version, ...diff } : identifiers
}
