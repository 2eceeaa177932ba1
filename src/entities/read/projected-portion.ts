import { type Database, shape } from '../../db/db.ts'
import type { Signal } from '../../process/signal.ts'
import { type Projection, pickedKeys } from './projection.ts'
import { arrayOfKeys, portion, rowText, rowTextOfMembers } from './read-sql.ts'

/** A row is null if its entity does not exist. `id` is null for an identifier that leads to none. */
export type PortionRow = { row: string | null; id: string | null; schema_version: number }

const relationships = `array(select a.id from attributes a where a.organization_id = $1 and a.owner_stack_id = $2
       and a.key = any($5::text[]) and a.target_stack_id is not null)`

/**
 * Reads a portion as `readPortionSql` does: only the members of a projection, or the entities that identifiers lead to.
 * `values` are the four parameters of that statement.
 */
export function readPortionOf(
  db: Database,
  values: readonly unknown[],
  { projection, sought }: { projection?: Projection | undefined; sought?: Parameters<typeof portion>[1] },
  signal?: Signal,
): Promise<PortionRow[]> {
  const keys = projection ? pickedKeys(projection) : []
  const named = keys.length > 0 && { keys: { array: '$5::text[]', count: keys.length }, relationships }
  const text = portion(projection ? rowTextOfMembers({ mask: projection.mask, ...named }) : rowText, sought)
  return db.query<PortionRow>(shape(text), [...values, ...(keys.length > 0 ? [arrayOfKeys(keys)] : [])], signal)
}
