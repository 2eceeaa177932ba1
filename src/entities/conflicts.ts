import type { EntityRow } from './entity-row.ts'
import { type Name, nameKey, namesNeeded, nameTaken, type Plan } from './plan-write.ts'
import { isMaking, type Write } from './write-request.ts'

/** One write of a set, planned, at its place in the order of arrival; `name` is what it is addressed by, as a {@link nameKey}. */
export type Item = { index: number; write: Write; plan: Plan; name: string | undefined }

type Taken = { set: Item[]; later: Item[] }

/** What one set may hold: writes, and bytes of their bodies. */
export type SetSize = { items: number; bytes: number }

/** Of writes that others wait beside: so that no neighbour waits long. */
const usualSize: SetSize = { items: 256, bytes: 1_048_576 }

/** What an item has to do with: the row it writes; names that it writes, mentions, or links to. */
type Touched = {
  row: string | undefined
  /** The name it is addressed by, and whether it is known to be somebody's. */
  addressed: string | undefined
  stands: boolean
  written: string[]
  mentioned: string[]
  linked: string[]
  /** Whether it frees a name that is not known before its row is read. */
  freesUnknown: boolean
}

/** What the items before have to do with, and of those among them that wait what cannot be told before rows are read. */
type Seen = {
  rows: Set<string>
  written: Set<string>
  mentioned: Set<string>
  linked: Set<string>
  /** Names that those who wait are addressed by, and link to. */
  wanted: Set<string>
  promised: Set<string>
  /** Ways of being addressed behind which it is unknown whether the row is the same. */
  vague: Set<string>
}

/**
 * Splits items into those that one set can decide side by side and those that must wait for the next one. Whoever
 * conflicts with an earlier item waits, and makes those wait that conflict with it. Two items conflict when both address
 * one row, when either writes a name (creates, renames from or to, deletes) that the other mentions, or when one links to
 * a name that nobody bears and so brings to life whom the other is addressed to.
 */
export function takeSet(
  items: Item[],
  { rows, size = usualSize }: { rows?: ReadonlyMap<Item, EntityRow>; size?: SetSize | undefined } = {},
): Taken {
  if (items[0]?.write.operation === 'import') return rows ? { set: items, later: [] } : takeImports(items, size)
  const seen: Seen = {
    rows: new Set(),
    written: new Set(),
    mentioned: new Set(),
    linked: new Set(),
    wanted: new Set(),
    promised: new Set(),
    vague: new Set(),
  }
  const set: Item[] = []
  const later: Item[] = []
  let bytes = 0
  let closed = false
  for (const item of items) {
    const touched = touches(item, rows?.get(item))
    bytes += item.write.bytes
    const full = set.length >= size.items || (set.length > 0 && bytes > size.bytes)
    const waits = closed || full || conflicts(touched, seen, rows !== undefined) || isVague(item, seen)
    if (waits && touched.addressed !== undefined) seen.wanted.add(touched.addressed)
    if (waits) for (const name of touched.linked) seen.promised.add(name)
    // One row may be addressed by its name and by its id; which, nobody knows before it is read.
    if (waits && !rows && item.write.address) seen.vague.add(wayOf(item.write, true))
    // A name that is about to become free, and nobody knows which.
    if (waits && touched.freesUnknown) closed = true
    if (waits) later.push(item)
    else set.push(item)
    if (touched.row !== undefined) seen.rows.add(touched.row)
    for (const name of touched.written) seen.written.add(name)
    for (const name of touched.mentioned) seen.mentioned.add(name)
    for (const name of touched.linked) seen.linked.add(name)
  }
  return { set, later }
}

/**
 * Imports come in sets of their own and conflict only where two write one name, which no row tells more about: a file whose
 * lines name the next would be as many sets as lines.
 */
function takeImports(items: Item[], size: SetSize): Taken {
  const written = new Set<string>()
  const [set, later]: [Item[], Item[]] = [[], []]
  let bytes = 0
  for (const item of items) {
    const { name } = item
    bytes += item.write.bytes
    const full = set.length >= size.items || (set.length > 0 && bytes > size.bytes)
    if (full || (name !== undefined && written.has(name))) later.push(item)
    else set.push(item)
    if (name !== undefined) written.add(name)
  }
  return { set, later }
}

function conflicts(touched: Touched, seen: Seen, rowsKnown: boolean): boolean {
  const { row, addressed, written, mentioned, linked } = touched
  return (
    (row !== undefined && seen.rows.has(row)) ||
    written.some(name => seen.written.has(name) || seen.mentioned.has(name)) ||
    mentioned.some(name => seen.written.has(name)) ||
    (rowsKnown && !touched.stands && addressed !== undefined && seen.linked.has(addressed)) ||
    linked.some(name => seen.wanted.has(name)) ||
    (addressed !== undefined && seen.promised.has(addressed))
  )
}

/** How a write is addressed, or the other way: by the name, or by the id, which may be of any name. */
function wayOf({ stack_id, address }: Write, other: boolean): string {
  const byId = address !== null && 'id' in address
  return `${stack_id} ${byId === other ? 'name' : 'id'}`
}

const isVague = ({ write }: Item, { vague }: Seen) => vague.size > 0 && vague.has(wayOf(write, false))

function touches({ write, plan, name }: Item, row: EntityRow | undefined): Touched {
  const { address } = write
  const written: Name[] = []
  const taken = nameTaken(write)
  if (taken) written.push(taken)
  const addressed = addressedName(write)
  const makes = isMaking(write)
  if (makes && addressed) written.push(addressed)
  const leaves = write.operation === 'delete' || taken !== undefined || write.body.external_id === null
  const standing = row?.external_id ? { stack_id: row.stack_id, external_id: row.external_id } : addressed
  if (leaves && standing) written.push(standing)
  const mentioned = namesNeeded(write, plan).map(nameKey)
  if (name !== undefined) mentioned.push(name)
  const byId = address && 'id' in address ? address.id : undefined
  return {
    // Before the rows are read, two items that give one name or one id address one row.
    row: row?.id ?? byId ?? (name && `name ${name}`),
    addressed: name,
    stands: row !== undefined,
    written: written.map(nameKey),
    mentioned,
    linked: [...plan.links.values()].flatMap(({ names }) => names.map(nameKey)),
    freesUnknown: leaves && !standing,
  }
}

export function addressedName({ address, stack_id }: Write): Name | undefined {
  return address && 'external_id' in address ? { stack_id, external_id: address.external_id } : undefined
}
