import { type Name, nameKey, namesNeeded, nameTaken, type Plan } from './plan.ts'
import type { EntityRow } from './row.ts'
import type { Write } from './write.ts'

/** One write of a set, planned, at its place in the order of arrival. */
export type Item = { index: number; write: Write; plan: Plan }

/** Of one set: at most this many writes, and bytes of bodies, so that no neighbour waits long. */
const set_items = 256
const set_bytes = 1_048_576

type Touched = { row?: string | undefined; written: string[]; mentioned: string[] }

/**
 * Splits items into those that one set can decide side by side and those that must wait for the next one. Two items
 * conflict when both address one row, or when either writes a name (creates, renames from or to, deletes) that the
 * other mentions. Whoever conflicts with an earlier item waits, and makes those wait that conflict with it.
 */
export function takeSet(items: Item[], rowOf: (item: Item) => EntityRow | undefined): { set: Item[]; later: Item[] } {
  const rows = new Set<string>()
  const written = new Set<string>()
  const mentioned = new Set<string>()
  const set: Item[] = []
  const later: Item[] = []
  let bytes = 0
  for (const item of items) {
    const touched = touches(item, rowOf(item))
    const conflicts =
      (touched.row !== undefined && rows.has(touched.row)) ||
      touched.written.some(name => written.has(name) || mentioned.has(name)) ||
      touched.mentioned.some(name => written.has(name))
    bytes += item.write.bytes
    const full = set.length >= set_items || (set.length > 0 && bytes > set_bytes)
    if (conflicts || full) later.push(item)
    else set.push(item)
    if (touched.row !== undefined) rows.add(touched.row)
    for (const name of touched.written) written.add(name)
    for (const name of touched.mentioned) mentioned.add(name)
  }
  return { set, later }
}

function touches({ write, plan }: Item, row: EntityRow | undefined): Touched {
  const written: Name[] = []
  const taken = nameTaken(write)
  if (taken) written.push(taken)
  const addressed = addressedName(write)
  const makes = write.operation === 'create' || write.operation === 'upsert'
  if (makes && addressed) written.push(addressed)
  const leaves = write.operation === 'delete' || taken !== undefined || write.body.external_id === null
  const standing = row?.external_id ? { stack_id: row.stack_id, external_id: row.external_id } : addressed
  if (leaves && standing) written.push(standing)
  const mentioned = namesNeeded(write, plan).map(nameKey)
  if (addressed) mentioned.push(nameKey(addressed))
  // Before the rows are read, two items that give one name address one row.
  return { row: row?.id ?? (addressed && `name ${nameKey(addressed)}`), written: written.map(nameKey), mentioned }
}

export function addressedName({ address, stack_id }: Write): Name | undefined {
  return address && 'external_id' in address ? { stack_id, external_id: address.external_id } : undefined
}
