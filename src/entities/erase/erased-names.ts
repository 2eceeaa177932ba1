import type { Transaction } from '../../db/db.ts'
import { rememberNamesSql } from '../write/store-sql.ts'

/**
 * Remembers the versions of the names that erased entities had, because their changes no longer tell them. The names of a stack share the
 * highest version.
 */
export async function rememberErasedNames(
  tx: Transaction,
  organization_id: number,
  entities: readonly { stack_id: number; version: number }[],
  namesByStack: ReadonlyMap<number, ReadonlySet<string>>,
): Promise<void> {
  const highest = new Map<number, number>()
  for (const { stack_id, version } of entities) highest.set(stack_id, Math.max(highest.get(stack_id) ?? 0, version))
  const names = [...namesByStack].flatMap(([stack_id, held]) =>
    [...held].map(external_id => ({ stack_id, external_id, version: highest.get(stack_id) ?? 0 })),
  )
  if (names.length > 0) await tx.query(rememberNamesSql, [organization_id, JSON.stringify(names)])
}
