import { type Database, shape } from '../../db/db.ts'
import type { Signal } from '../../process/signal.ts'
import { type Projection, pickedKeys } from './projection.ts'
import { portion, rowTextOfMembers } from './read-sql.ts'

type PortionRow = { row: string | null; schema_version: number }

const relationships = `array(select a.id from attributes a where a.organization_id = $1 and a.owner_stack_id = $2
       and a.key = any($5::text[]) and a.target_stack_id is not null)`

/** Reads a portion as `readPortionSql` does, of the members that a projection shows. `values` are the four of that statement. */
export function readProjectedPortion(
  db: Database,
  values: readonly unknown[],
  projection: Projection,
  signal?: Signal,
): Promise<PortionRow[]> {
  const keys = pickedKeys(projection)
  const named = keys.length > 0 && { keys: { array: '$5::text[]', count: keys.length }, relationships }
  const text = portion(rowTextOfMembers({ mask: projection.mask, ...named }))
  return db.query<PortionRow>(shape(text), [...values, ...(keys.length > 0 ? [keys] : [])], signal)
}
