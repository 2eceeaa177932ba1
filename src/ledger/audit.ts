import {
  type Checkpoint,
  parseCheckpoint,
  parseNote,
  parseVerifierKey,
  verifyNote,
} from '../../client/src/ledger-proof.ts'
import { FormatError } from '../../client/src/ledger-text.ts'
import type { Context } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import {
  auditPartSql,
  beginAuditSql,
  countAnswersOfChangesSql,
  countAnswersSql,
  readBoundariesSql,
} from './audit-sql.ts'
import { leafData } from './entry.ts'
import { type LedgerKey, listLedgerKeys } from './keys.ts'
import type { StoredEntry } from './ledger.ts'
import { formatVerifierKey } from './note.ts'
import { entryOf, readAnswersOf } from './seal.ts'
import { readEntriesSql, readTilesSql } from './sql.ts'
import {
  fullTiles,
  GrowingTree,
  hashBytes,
  keyOfTile,
  levelsOf,
  subtreeRoot,
  type TileId,
  tileWidth,
  writeLeafHash,
} from './tree.ts'

/** A part of the ledger that was changed after it was sealed. `message` is a sentence. */
export type Finding = {
  kind: 'entry' | 'answer' | 'tile' | 'checkpoint'
  /** The index of an entry. */
  index?: number
  message: string
}

export type AuditResult = {
  organization: string
  size: number
  /** The root hash that follows from the entries, in base64. */
  root_hash: string
  /** Answers that are not sealed yet, because they are new. */
  waiting: number
  findings: Finding[]
  /** Whether there are more findings than these. */
  has_more: boolean
}

export type AuditOptions = {
  /** A checkpoint that was kept elsewhere, as {@link readKeptCheckpoint} verifies it. */
  since?: Checkpoint | undefined
  /** How many statements run at a time. */
  concurrency?: number
  onProgress?: (done: number, size: number) => void
}

/** The entries that one statement compares with their answers: it takes about 50 ms. */
const entriesPerPart = 16 * tileWidth
const maxFindings = 100

/**
 * Verifies a checkpoint that was kept elsewhere. Throws a FormatError if it is malformed, belongs to another ledger, or is not signed
 * by a key of this service. An earlier `log_id` of the organization is the same ledger: it goes on after `kith log renew`.
 */
export async function readKeptCheckpoint(db: Database, organization: string, note: string): Promise<Checkpoint> {
  const checkpoint = await readCheckpoint(note, await listLedgerKeys(db))
  if (organizationOf(checkpoint.origin) === organization) return checkpoint
  throw new FormatError(`The checkpoint belongs to another ledger, ${checkpoint.origin}.`)
}

const organizationOf = (origin: string) => origin.split('/').at(-2)

/** Verifies a checkpoint by the keys of all ledgers, whose name is its origin. */
async function readCheckpoint(note: string, keys: LedgerKey[]): Promise<Checkpoint> {
  const checkpoint = parseCheckpoint(parseNote(note).text)
  const texts = keys.map(({ publicKey }) => formatVerifierKey(checkpoint.origin, publicKey))
  await verifyNote(note, await Promise.all(texts.map(parseVerifierKey)))
  return checkpoint
}

/** Recomputes the ledger of an organization from its answers, and names what was changed. It needs little memory at any size. */
export async function auditLedger(context: Context, options: AuditOptions = {}): Promise<AuditResult> {
  return new Audit(context, options).run()
}

type State = {
  organization: string
  size: number
  edge: Buffer | null
  checkpoint: string | null
  position: number
  entries_beyond: number
  tiles: number
}
type Part = { entries: number; answers: number; leaves: Buffer; suspects: number[] | null; unsealed: number[] | null }
type PartRange = { from: number; to: number; first: number; end: number }

class TooManyFindings extends Error {}

class Audit {
  readonly #context: Context
  readonly #options: AuditOptions
  readonly #findings: Finding[] = []
  readonly #faultyEntries = new Set<number>()
  #state!: State
  /** The tree above the tiles of the lowest level: its leaves are their roots. */
  readonly #upper = new GrowingTree()
  /** The hashes of the leaves after the last full tile. */
  #partial = Buffer.alloc(0)
  /** The answers of the changes up to the position. */
  #answers = 0

  constructor(context: Context, options: AuditOptions) {
    this.#context = context
    this.#options = options
  }

  async run(): Promise<AuditResult> {
    const [state] = await this.#context.db.query<State>(beginAuditSql, [this.#context.organization_id])
    if (!state) throw new Error(`there is no organization ${this.#context.organization_id}`)
    this.#state = state
    let hasMore = false
    let waiting = 0
    try {
      this.#checkCounts()
      await this.#checkParts()
      waiting = await this.#countWaiting()
      await this.#checkTop()
    } catch (error) {
      if (!(error instanceof TooManyFindings)) throw error
      hasMore = true
    }
    const { organization, size } = state
    const root_hash = this.#root().toString('base64')
    return { organization, size, root_hash, waiting, findings: this.#findings, has_more: hasMore }
  }

  #report(finding: Finding): void {
    if (finding.index !== undefined) {
      if (this.#faultyEntries.has(finding.index)) return
      this.#faultyEntries.add(finding.index)
    }
    if (this.#findings.length === maxFindings) throw new TooManyFindings()
    this.#findings.push(finding)
  }

  #checkCounts(): void {
    const { size, entries_beyond: beyond, tiles } = this.#state
    if (beyond > 0)
      this.#report({ kind: 'entry', message: `${beyond} stored entries are not among the ${size} sealed ones.` })
    const expected = Array.from({ length: levelsOf(size) }, (_, level) => fullTiles(level, size))
    const count = expected.reduce((sum, each) => sum + each, 0)
    if (tiles !== count)
      this.#report({ kind: 'tile', message: `${tiles} full tiles are stored, but ${size} entries have ${count}.` })
  }

  /** Compares the entries with the answers, part by part. The next parts are read while one is hashed. */
  async #checkParts(): Promise<void> {
    const { concurrency = 2, onProgress } = this.#options
    const ranges = await this.#ranges()
    const reading: Promise<Part>[] = []
    const readNext = () => {
      const range = ranges[reading.length]
      if (!range) return
      const part = this.#readPart(range)
      // A finding may end the audit before this part is awaited.
      part.catch(() => {})
      reading.push(part)
    }
    for (let ahead = 0; ahead < concurrency; ahead++) readNext()
    for (const [position, range] of ranges.entries()) {
      const part = await reading[position]!
      reading[position] = undefined as never
      readNext()
      await this.#checkPart(range, part)
      onProgress?.(range.to, this.#state.size)
    }
  }

  /** The parts, with their changes. Together they have all changes up to the position, whatever the entries say. */
  async #ranges(): Promise<PartRange[]> {
    const { size, position } = this.#state
    const starts = Array.from({ length: Math.ceil(size / entriesPerPart) }, (_, part) => part * entriesPerPart)
    const rows = await this.#context.db.query<{ index: number; sequence: number }>(readBoundariesSql, [
      this.#context.organization_id,
      starts.slice(1),
    ])
    const sequences = new Map(rows.map(({ index, sequence }) => [index, sequence]))
    let first = 0
    return (starts.length > 0 ? starts : [0]).map((from, part) => {
      const to = Math.min(size, from + entriesPerPart)
      const end = part === Math.max(1, starts.length) - 1 ? position + 1 : (sequences.get(to) ?? first)
      const range = { from, to, first, end }
      first = end
      return range
    })
  }

  async #readPart({ from, to, first, end }: PartRange): Promise<Part> {
    const values = [this.#context.organization_id, from, to, first, end, this.#state.organization]
    const [part] = await this.#context.db.query<Part>(auditPartSql, values)
    return part!
  }

  async #checkPart(range: PartRange, part: Part): Promise<void> {
    const { from, to } = range
    this.#answers += part.answers
    const leaves = part.entries === to - from ? part.leaves : await this.#readLeaves(from, to)
    const blocks = blocksOf(from, to)
    const tiles = await this.#readTiles(
      blocks.filter(({ count }) => count === tileWidth).map(({ index }) => ({ level: 0, index })),
    )
    const hashes = hashLeaves(leaves)
    for (const { index, count } of blocks) {
      const start = index * tileWidth - from
      const computed = hashes.subarray(start * hashBytes, (start + count) * hashBytes)
      await this.#checkBlock(index, computed, tiles)
    }
    for (const sequence of part.unsealed ?? [])
      this.#report({ kind: 'answer', message: `An answer of change ${sequence} is not in the ledger.` })
    for (const index of part.suspects ?? []) await this.#checkSuspect(index)
  }

  /** The data of the leaves of a part with missing entries, which are reported. */
  async #readLeaves(from: number, to: number): Promise<Buffer> {
    const indexes = Array.from({ length: to - from }, (_, position) => from + position)
    const entries = new Map((await this.#readEntries(indexes)).map(entry => [entry.index, entry.hash]))
    const leaves = Buffer.alloc(indexes.length * hashBytes)
    for (const index of indexes) {
      const hash = entries.get(index)
      if (hash) hash.copy(leaves, (index - from) * hashBytes)
      else this.#report({ kind: 'entry', index, message: `Entry ${index} is missing.` })
    }
    return leaves
  }

  #readEntries(indexes: number[]): Promise<StoredEntry[]> {
    return this.#context.db.query<StoredEntry>(readEntriesSql, [this.#context.organization_id, indexes])
  }

  async #readTiles(ids: TileId[]): Promise<Map<string, Buffer>> {
    if (ids.length === 0) return new Map()
    const values = [this.#context.organization_id, ids.map(({ level }) => level), ids.map(({ index }) => index)]
    const rows = await this.#context.db.query<TileId & { data: Buffer }>(readTilesSql, values)
    return new Map(rows.map(row => [keyOfTile(row), row.data]))
  }

  /** Compares the hashes of up to 256 leaves with their tile, and goes on with the one that the tile above agrees with. */
  async #checkBlock(index: number, computed: Buffer, tiles: Map<string, Buffer>): Promise<void> {
    const { since } = this.#options
    const isFull = computed.length === tileWidth * hashBytes
    const id = { level: 0, index }
    const stored = isFull ? tiles.get(keyOfTile(id)) : this.#storedEdge().get(keyOfTile(id))
    const hashes = stored?.equals(computed) ? computed : await this.#resolveBlock(index, computed, stored)
    const before = index * tileWidth
    const count = hashes.length / hashBytes
    if (since && since.size >= before && since.size < before + count) this.#checkSince(since, hashes)
    if (!isFull) {
      this.#partial = Buffer.from(hashes)
      return
    }
    const completed = this.#upper
      .append(subtreeRoot(hashes))
      .map(({ level, ...tile }) => ({ ...tile, level: level + 1 }))
    const storedAbove = await this.#readTiles(completed)
    for (const tile of completed) this.#compareTile(tile, storedAbove.get(keyOfTile(tile)))
  }

  #compareTile(computed: TileId & { data: Buffer }, stored: Buffer | undefined): void {
    if (stored?.equals(computed.data)) return
    const reason = stored ? 'was changed' : 'is missing'
    this.#report({ kind: 'tile', message: `Tile ${keyOfTile(computed)} ${reason}.` })
  }

  /** Finds out whether the entries or their tile were changed: the tile is right if the tile above, or the checkpoint, agrees. */
  async #resolveBlock(index: number, computed: Buffer, stored: Buffer | undefined): Promise<Buffer> {
    const id = { level: 0, index }
    if (stored?.length !== computed.length || !(await this.#isConfirmed(index, stored))) {
      this.#compareTile({ ...id, data: computed }, stored)
      return computed
    }
    for (let position = 0; position < computed.length / hashBytes; position++) {
      const [start, end] = [position * hashBytes, (position + 1) * hashBytes]
      const entry = index * tileWidth + position
      if (!computed.subarray(start, end).equals(stored.subarray(start, end)))
        await this.#reportChangedHash(entry, stored.subarray(start, end))
    }
    return stored
  }

  async #isConfirmed(index: number, stored: Buffer): Promise<boolean> {
    const { size, edge } = this.#state
    if (stored.length < tileWidth * hashBytes)
      return edge !== null && this.#rootOfEdge(edge)?.equals(this.#claimedRoot()!) === true
    const parent = { level: 1, index: Math.floor(index / tileWidth) }
    const isFull = parent.index < fullTiles(1, size)
    const above = isFull ? await this.#readTiles([parent]) : this.#storedEdge()
    const at = (index % tileWidth) * hashBytes
    return (
      above
        .get(keyOfTile(parent))
        ?.subarray(at, at + hashBytes)
        .equals(subtreeRoot(stored)) === true
    )
  }

  async #reportChangedHash(index: number, sealed: Buffer): Promise<void> {
    const [entry] = await this.#readEntries([index])
    if (!entry) return
    const expected = await this.#expectedData(entry)
    const isHashAlone = !expected?.length || hashLeaves(expected).equals(sealed)
    const what = isHashAlone ? 'stored hash was' : 'answer or salt, and its stored hash were'
    this.#report({ kind: 'entry', index, message: `${nameOf(entry)}: its ${what} changed.` })
  }

  /** Checks an entry by itself, with the code that seals. */
  async #checkSuspect(index: number): Promise<void> {
    const [entry] = await this.#readEntries([index])
    if (!entry) return
    const expected = await this.#expectedData(entry)
    const say = (what: string) => this.#report({ kind: 'entry', index, message: `${nameOf(entry)}: ${what}.` })
    if (expected === undefined) return entry.salt === null ? undefined : say('its answer is missing')
    if (entry.salt === null) return say('its salt is missing, although its answer is stored')
    if (!expected.equals(entry.hash)) say('its answer or its salt was changed')
  }

  /** The data of a leaf that follow from the answer and the salt. Empty without a salt, undefined without an answer. */
  async #expectedData({ sequence, consent_type_id, channel, salt }: StoredEntry): Promise<Buffer | undefined> {
    const answers = await readAnswersOf(this.#context, sequence)
    const answer = answers.find(each => each.consent_type_id === consent_type_id && each.channel === channel)
    if (!answer) return undefined
    return salt === null ? Buffer.alloc(0) : leafData(salt, entryOf(this.#state.organization, answer))
  }

  #checkSince(since: Checkpoint, hashes: Buffer): void {
    const partial = hashes.subarray(0, (since.size % tileWidth) * hashBytes)
    const root = new GrowingTree(since.size, Buffer.concat([partial, this.#upper.edge()])).root()
    if (root.equals(since.rootHash)) return
    this.#report({
      kind: 'checkpoint',
      message: `The ledger does not begin with the ${since.size} entries of the kept checkpoint: its first entries were rewritten.`,
    })
  }

  /** The partial tiles that are stored, by {@link keyOfTile}. */
  #storedEdge(): Map<string, Buffer> {
    const { size, edge } = this.#state
    const tree = edge && treeOf(size, edge)
    return new Map((tree?.partialTiles() ?? []).map(tile => [keyOfTile(tile), tile.data]))
  }

  #rootOfEdge(edge: Buffer): Buffer | undefined {
    return treeOf(this.#state.size, edge)?.root()
  }

  /** The root hash that the stored checkpoint states, without a look at its signature. */
  #claimedRoot(): Uint8Array | undefined {
    try {
      return parseCheckpoint(parseNote(this.#state.checkpoint ?? '').text).rootHash
    } catch {
      return undefined
    }
  }

  #root(): Buffer {
    const size = this.#upper.size * tileWidth + this.#partial.length / hashBytes
    return new GrowingTree(size, Buffer.concat([this.#partial, this.#upper.edge()])).root()
  }

  /** Compares the partial tiles, the checkpoint and the kept checkpoint with the entries. */
  async #checkTop(): Promise<void> {
    const { size, edge, checkpoint } = this.#state
    const { since } = this.#options
    if (since && since.size === size) this.#checkSince(since, this.#partial)
    if (since && since.size > size)
      this.#report({
        kind: 'checkpoint',
        message: `The kept checkpoint has ${since.size} entries, but the ledger has only ${size}: entries were removed.`,
      })
    if (size === 0) return
    const stored = this.#storedEdge()
    if (stored.size === 0 && edge?.length !== 0)
      this.#report({ kind: 'tile', message: `The partial tiles are not those of ${size} entries.` })
    else
      for (const { level, ...tile } of this.#upper.partialTiles()) {
        const id = { level: level + 1, index: tile.index }
        this.#compareTile({ ...id, data: tile.data }, stored.get(keyOfTile(id)))
      }
    await this.#checkCheckpoint(checkpoint ?? '')
  }

  async #checkCheckpoint(note: string): Promise<void> {
    const { size, organization } = this.#state
    const say = (message: string) => this.#report({ kind: 'checkpoint', message })
    try {
      const checkpoint = await readCheckpoint(note, await listLedgerKeys(this.#context.db))
      if (organizationOf(checkpoint.origin) !== organization)
        say(`The stored checkpoint belongs to another ledger, ${checkpoint.origin}.`)
      else if (checkpoint.size !== size) say(`The stored checkpoint has ${checkpoint.size} entries, not ${size}.`)
      else if (!this.#root().equals(checkpoint.rootHash))
        say('The root hash of the stored checkpoint does not follow from the entries.')
    } catch (error) {
      if (!(error instanceof FormatError)) throw error
      say(`The stored checkpoint was changed. ${error.message}`)
    }
  }

  /** Counts the answers that wait to be sealed, and reports those that belong to no change. */
  async #countWaiting(): Promise<number> {
    const { position } = this.#state
    const id = this.#context.organization_id
    const [all] = await this.#context.db.query<{ answers: number; head: number }>(countAnswersSql, [id])
    const { answers, head } = all!
    const [later] = await this.#context.db.query<{ answers: number }>(countAnswersOfChangesSql, [id, position, head])
    const waiting = later!.answers
    const strays = answers - waiting - this.#answers
    if (strays > 0)
      this.#report({ kind: 'answer', message: `${strays} answers of the consent history belong to no change.` })
    return waiting
  }
}

const nameOf = ({ index, sequence, consent_type_id, channel }: StoredEntry) =>
  `Entry ${index} (change ${sequence}, consent type ${consent_type_id}, ${channel})`

function treeOf(size: number, edge: Buffer): GrowingTree | undefined {
  try {
    return new GrowingTree(size, edge)
  } catch {
    return undefined
  }
}

/** The tiles of a range of entries: their indexes, and how many entries of the range they have. */
function blocksOf(from: number, to: number): { index: number; count: number }[] {
  const blocks = []
  for (let start = from; start < to; start += tileWidth)
    blocks.push({ index: start / tileWidth, count: Math.min(tileWidth, to - start) })
  return blocks
}

/** The hashes of leaves, from their data. */
function hashLeaves(leaves: Buffer): Buffer {
  const hashes = Buffer.alloc(leaves.length)
  for (let at = 0; at < leaves.length; at += hashBytes) writeLeafHash(leaves, at, hashes, at)
  return hashes
}
