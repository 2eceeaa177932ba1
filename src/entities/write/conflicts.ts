import { peopleStackId } from '../../organizations/definitions.ts'
import type { EntityRow } from '../entity-row.ts'
import { fieldsByKey } from '../match-keys.ts'
import type { Write } from '../write-request.ts'
import { addressKeyOf, type Item, type TouchedNames, touchedNames, uniqueKeysOf } from './plan-write.ts'

type Split = { set: Item[]; later: Item[] }

/** Maximum size of a set: number of writes, and bytes of their bodies. */
export type SetSize = { items: number; bytes: number }

/** Default size. It bounds the time that the requests of one set wait for each other. */
const defaultSize: SetSize = { items: 256, bytes: 1_048_576 }

/** The addresses and names of the earlier items. The last three sets cover only the deferred ones. */
type Seen = {
  /** Ids of rows, or addresses whose row is unknown. */
  rows: Set<string>
  addressed: Set<string>
  linked: Set<string>
  written: Set<string>
  deferredAddressed: Set<string>
  deferredLinked: Set<string>
  /** Address kinds that may refer to the row of a deferred item ({@link addressKind}). */
  ambiguous: Set<string>
  /** Whether an item recognizes its person, and whether another one may change by what it is recognized. */
  hasMatch: boolean
  hasKeyChange: boolean
  /** Whether a deferred item touches unique values: it may release one that is unknown until its row is read. */
  defersUnique: boolean
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
  if (items.length === 1) return { set: items, later: [] }
  if (items[0]?.write.operation === 'import') return rows ? splitByRow(items, rows) : takeImports(items, size)
  const seen: Seen = {
    rows: new Set(),
    addressed: new Set(),
    linked: new Set(),
    written: new Set(),
    deferredAddressed: new Set(),
    deferredLinked: new Set(),
    ambiguous: new Set(),
    hasMatch: false,
    hasKeyChange: false,
    defersUnique: false,
  }
  const set: Item[] = []
  const later: Item[] = []
  let bytes = 0
  let isClosed = false
  for (const item of items) {
    const row = rows?.get(item)
    const rowKey = row?.id ?? addressKeyOf(item)
    const names = touchedNames(item, row)
    bytes += item.write.bytes
    const isFull = set.length >= size.items || (set.length > 0 && bytes > size.bytes)
    const isConflicting =
      (rowKey !== undefined && seen.rows.has(rowKey)) ||
      touchesSeen(names, seen) ||
      (item.match ? seen.hasKeyChange : seen.hasMatch && mayChangeKeys(item)) ||
      (rows !== undefined && !row && names.addressed !== undefined && seen.linked.has(names.addressed))
    // An item that recognizes its person may concern the row of any deferred item, and the other way around.
    const mayFollow = !rows && item.match !== undefined && later.length > 0
    const touchesUnique = !rows && item.plan.uniques !== undefined
    const isDeferred =
      isClosed ||
      isFull ||
      isConflicting ||
      mayFollow ||
      isAmbiguous(item, seen) ||
      (touchesUnique && seen.defersUnique)
    if (isDeferred && touchesUnique) seen.defersUnique = true
    if (isDeferred && names.addressed !== undefined) seen.deferredAddressed.add(names.addressed)
    if (isDeferred) for (const name of names.linked) seen.deferredLinked.add(name)
    // A name and an id may address the same row. That is unknown until the row is read.
    if (isDeferred && !rows && item.write.address) seen.ambiguous.add(addressKind(item.write, true))
    // The item releases a name that is still unknown, so every later item is deferred.
    if (isDeferred && (names.releasesUnknown || (!rows && item.match))) isClosed = true
    if (isDeferred) later.push(item)
    else set.push(item)
    if (rowKey !== undefined) seen.rows.add(rowKey)
    if (names.addressed !== undefined) seen.addressed.add(names.addressed)
    for (const name of names.linked) seen.linked.add(name)
    for (const name of names.written) seen.written.add(name)
    if (item.match) seen.hasMatch = true
    else seen.hasKeyChange ||= mayChangeKeys(item)
  }
  return { set, later }
}

/** Whether a write may change by what people are recognized. */
function mayChangeKeys({ write: { operation, stack_id, body } }: Item): boolean {
  if (stack_id !== peopleStackId) return false
  if (operation === 'put' || operation === 'delete' || operation === 'restore') return true
  return recognizingFields.some(field => body[field] !== undefined)
}

const recognizingFields = ['external_id', ...fieldsByKey.email_key, ...fieldsByKey.mobile_key] as const

/**
 * Splits imports. Sets contain only imports, and two imports conflict only if they write the same name or unique value. Links do not
 * conflict: otherwise a file in which each line links to the next would need one set per line. The match stage finds the
 * conflicts of imports that recognize their people. After one of these that is deferred, all are: each may concern its
 * person.
 */
function takeImports(items: Item[], size: SetSize): Split {
  const written = new Set<string>()
  const [set, later]: [Item[], Item[]] = [[], []]
  let bytes = 0
  let defersUnique = false
  for (const item of items) {
    const { claims = [], uniques } = item.plan
    const names = claims.map(({ key }) => key)
    const name = item.match ? undefined : addressKeyOf(item)
    if (name !== undefined) names.push(name)
    bytes += item.write.bytes
    const isFull = set.length >= size.items || (set.length > 0 && bytes > size.bytes)
    const mayFollow = item.match !== undefined && later.length > 0
    const isDeferred =
      isFull || mayFollow || names.some(key => written.has(key)) || (uniques !== undefined && defersUnique)
    if (isDeferred) later.push(item)
    else set.push(item)
    if (isDeferred && uniques) defersUnique = true
    for (const key of names) written.add(key)
  }
  return { set, later }
}

/**
 * Defers the imports whose row an earlier import of the set has, because they name one person in several ways, and those with a unique
 * value that an earlier one sets or releases. After a deferred one that recognizes its person, all are deferred.
 */
function splitByRow(items: Item[], rows: ReadonlyMap<Item, EntityRow>): Split {
  const seen = new Set<string>()
  const [set, later]: [Item[], Item[]] = [[], []]
  for (const item of items) {
    const row = rows.get(item)
    const keys = uniqueKeysOf(item, row)
    if (row) keys.push(row.id)
    const mayFollow = item.match !== undefined && later.length > 0
    const isDeferred = mayFollow || keys.some(key => seen.has(key))
    if (isDeferred) later.push(item)
    else set.push(item)
    for (const key of keys) seen.add(key)
  }
  return { set, later }
}

function touchesSeen({ addressed, linked, written }: TouchedNames, seen: Seen): boolean {
  return (
    written.some(name => seen.written.has(name) || seen.addressed.has(name) || seen.linked.has(name)) ||
    (addressed !== undefined && (seen.written.has(addressed) || seen.deferredLinked.has(addressed))) ||
    linked.some(name => seen.written.has(name) || seen.deferredAddressed.has(name))
  )
}

/** Returns the stack and whether the write is addressed by name or by id. With `opposite`, returns the other kind. */
function addressKind({ stack_id, address }: Write, opposite: boolean): string {
  const byId = address !== null && 'id' in address
  return `${stack_id} ${byId === opposite ? 'name' : 'id'}`
}

const isAmbiguous = ({ write }: Item, { ambiguous }: Seen) =>
  ambiguous.size > 0 && ambiguous.has(addressKind(write, false))

/** The names that an array of writes writes or mentions, and a promise for its end. */
type PendingArray = {
  written: Set<string>
  mentioned: Set<string>
  ended: Promise<void>
  /** Whether the array may write more people than it has found, because an earlier one changes whom it recognizes. */
  isUncertain: boolean
}

/**
 * Keeps concurrent arrays of writes in order. An array that writes a name waits for earlier arrays that write or
 * mention it. An array that mentions a name waits for earlier arrays that write it. Two arrays that mention the same
 * name run in parallel. If both create its placeholder, the unique index fails one of them, and that one is decided
 * again. An array that recognizes people writes those whom its keys find. If it has to wait, it may then recognize
 * others, so all later arrays wait for it.
 */
export class WriteOrder {
  // An array, because the old tables of a Set would keep ended entries from being collected (db/liveness.ts).
  readonly #pending: PendingArray[] = []

  /** Ends when the earlier arrays have registered their names, which `read` may add to. */
  #registered: Promise<void> = Promise.resolve()

  /**
   * Waits until the items may be written. Returns a function to call when the writes end, even after an error. The arrays take their
   * places in the order of the calls. `read` plans the items, adds the names that they have in common, and returns them with the ids of
   * the people whom they recognize. It runs after the earlier arrays have taken their places.
   */
  async acquire(read: () => Promise<{ items: Item[]; recognized: readonly string[] }>): Promise<() => void> {
    const earlier = this.#registered
    const { promise: registered, resolve: onRegistered } = Promise.withResolvers<void>()
    this.#registered = registered
    const { promise: ended, resolve: onEnded } = Promise.withResolvers<void>()
    let own: PendingArray
    let before: PendingArray[]
    try {
      await earlier
      // One that ends during the read counts: the read may not have seen its writes.
      const concurrent = [...this.#pending]
      const { items, recognized } = await read()
      const names = namesOf(items, recognized)
      before = concurrent.filter(other => mustFollow(names, other))
      own = { ...names, ended, isUncertain: before.length > 0 && items.some(({ match }) => match) }
      this.#pending.push(own)
    } finally {
      // If `read` fails, the next array still waits for the ones before this one.
      onRegistered()
    }
    await Promise.all(before.map(other => other.ended))
    return () => {
      const index = this.#pending.indexOf(own)
      if (index !== -1) this.#pending.splice(index, 1)
      onEnded()
    }
  }
}

/** The names that the items of an array write or mention. */
function namesOf(items: Item[], recognized: readonly string[]): Pick<PendingArray, 'written' | 'mentioned'> {
  const written = new Set(recognized)
  const mentioned = new Set<string>()
  for (const item of items) {
    const names = touchedNames(item)
    if (names.addressed !== undefined) written.add(names.addressed)
    for (const name of names.written) written.add(name)
    for (const name of names.linked) mentioned.add(name)
    // Which unique values a write releases is unknown here, so arrays that may set or release any follow each other.
    for (const { id } of item.plan.uniques ?? []) written.add(`unique\n${id}`)
  }
  return { written, mentioned }
}

function mustFollow(one: Pick<PendingArray, 'written' | 'mentioned'>, other: PendingArray): boolean {
  return (
    other.isUncertain ||
    !one.written.isDisjointFrom(other.written) ||
    !one.written.isDisjointFrom(other.mentioned) ||
    !one.mentioned.isDisjointFrom(other.written)
  )
}
