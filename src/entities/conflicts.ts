import type { EntityRow } from './entity-row.ts'
import { type Name, nameKey, newNameOf, type Plan, requiredNames } from './plan-write.ts'
import { canCreate, type Write } from './write-request.ts'

/**
 * One planned write. `index` is its position in the array; `name` is the {@link nameKey} of its address, if it has one.
 */
export type Item = { index: number; write: Write; plan: Plan; name: string | undefined }

type Split = { set: Item[]; later: Item[] }

/** Maximum size of a set: number of writes, and bytes of their bodies. */
export type SetSize = { items: number; bytes: number }

/** Default size. It bounds the time that the requests of one set wait for each other. */
const defaultSize: SetSize = { items: 256, bytes: 1_048_576 }

/** The row that an item writes, and the names that it writes, mentions or links to. */
type Footprint = {
  row: string | undefined
  /** The name it is addressed by, and whether an entity is known to have that name. */
  addressed: string | undefined
  exists: boolean
  written: string[]
  mentioned: string[]
  linked: string[]
  /** Whether it releases a name that is unknown until its row is read. */
  releasesUnknown: boolean
}

/** The combined footprints of the earlier items. The last three sets cover only the deferred ones. */
type Seen = {
  rows: Set<string>
  written: Set<string>
  mentioned: Set<string>
  linked: Set<string>
  /** Names that deferred items are addressed by, and names that they link to. */
  deferredAddressed: Set<string>
  deferredLinked: Set<string>
  /** Address kinds that may refer to the row of a deferred item ({@link addressKind}). */
  ambiguous: Set<string>
}

/**
 * Splits items into those that one set can decide independently and those deferred to a later set. An item that
 * conflicts with an earlier item is deferred, and so are the items that conflict with a deferred one. Two items
 * conflict in three cases: both address the same row; one writes a name (by creating, renaming from or to, or deleting)
 * that the other mentions; or one links to a missing name, which creates the entity that the other one addresses.
 */
export function takeSet(
  items: Item[],
  { rows, size = defaultSize }: { rows?: ReadonlyMap<Item, EntityRow>; size?: SetSize | undefined } = {},
): Split {
  if (items[0]?.write.operation === 'import') return rows ? { set: items, later: [] } : takeImports(items, size)
  const seen: Seen = {
    rows: new Set(),
    written: new Set(),
    mentioned: new Set(),
    linked: new Set(),
    deferredAddressed: new Set(),
    deferredLinked: new Set(),
    ambiguous: new Set(),
  }
  const set: Item[] = []
  const later: Item[] = []
  let bytes = 0
  let isClosed = false
  for (const item of items) {
    const footprint = footprintOf(item, rows?.get(item))
    bytes += item.write.bytes
    const isFull = set.length >= size.items || (set.length > 0 && bytes > size.bytes)
    const isDeferred = isClosed || isFull || conflicts(footprint, seen, rows !== undefined) || isAmbiguous(item, seen)
    if (isDeferred && footprint.addressed !== undefined) seen.deferredAddressed.add(footprint.addressed)
    if (isDeferred) for (const name of footprint.linked) seen.deferredLinked.add(name)
    // A name and an id may address the same row. That is unknown until the row is read.
    if (isDeferred && !rows && item.write.address) seen.ambiguous.add(addressKind(item.write, true))
    // The item releases a name that is still unknown, so every later item is deferred.
    if (isDeferred && footprint.releasesUnknown) isClosed = true
    if (isDeferred) later.push(item)
    else set.push(item)
    if (footprint.row !== undefined) seen.rows.add(footprint.row)
    for (const name of footprint.written) seen.written.add(name)
    for (const name of footprint.mentioned) seen.mentioned.add(name)
    for (const name of footprint.linked) seen.linked.add(name)
  }
  return { set, later }
}

/**
 * Splits imports. Sets contain only imports, and two imports conflict only if they write the same name. Links do not
 * conflict: otherwise a file in which each line links to the next would need one set per line.
 */
function takeImports(items: Item[], size: SetSize): Split {
  const written = new Set<string>()
  const [set, later]: [Item[], Item[]] = [[], []]
  let bytes = 0
  for (const item of items) {
    const { name } = item
    bytes += item.write.bytes
    const isFull = set.length >= size.items || (set.length > 0 && bytes > size.bytes)
    if (isFull || (name !== undefined && written.has(name))) later.push(item)
    else set.push(item)
    if (name !== undefined) written.add(name)
  }
  return { set, later }
}

function conflicts(footprint: Footprint, seen: Seen, rowsKnown: boolean): boolean {
  const { row, addressed, written, mentioned, linked } = footprint
  return (
    (row !== undefined && seen.rows.has(row)) ||
    written.some(name => seen.written.has(name) || seen.mentioned.has(name)) ||
    mentioned.some(name => seen.written.has(name)) ||
    (rowsKnown && !footprint.exists && addressed !== undefined && seen.linked.has(addressed)) ||
    linked.some(name => seen.deferredAddressed.has(name)) ||
    (addressed !== undefined && seen.deferredLinked.has(addressed))
  )
}

/** Returns the stack and whether the write is addressed by name or by id. With `opposite`, returns the other kind. */
function addressKind({ stack_id, address }: Write, opposite: boolean): string {
  const byId = address !== null && 'id' in address
  return `${stack_id} ${byId === opposite ? 'name' : 'id'}`
}

const isAmbiguous = ({ write }: Item, { ambiguous }: Seen) =>
  ambiguous.size > 0 && ambiguous.has(addressKind(write, false))

function footprintOf({ write, plan, name }: Item, row: EntityRow | undefined): Footprint {
  const { address } = write
  const written: Name[] = []
  const newName = newNameOf(write)
  if (newName) written.push(newName)
  const addressed = addressedName(write)
  if (canCreate(write) && addressed) written.push(addressed)
  const releasesName = write.operation === 'delete' || newName !== undefined || write.body.external_id === null
  const currentName = row?.external_id ? { stack_id: row.stack_id, external_id: row.external_id } : addressed
  if (releasesName && currentName) written.push(currentName)
  const mentioned = requiredNames(write, plan).map(nameKey)
  if (name !== undefined) mentioned.push(name)
  const byId = address && 'id' in address ? address.id : undefined
  return {
    // Until the rows are read, two items with the same name or the same id count as addressing the same row.
    row: row?.id ?? byId ?? (name && `name ${name}`),
    addressed: name,
    exists: row !== undefined,
    written: written.map(nameKey),
    mentioned,
    linked: [...plan.links.values()].flatMap(({ names }) => names.map(nameKey)),
    releasesUnknown: releasesName && !currentName,
  }
}

/** The name that a write is addressed by; undefined if it is addressed by id or has no address. */
export function addressedName({ address, stack_id }: Write): Name | undefined {
  return address && 'external_id' in address ? { stack_id, external_id: address.external_id } : undefined
}
