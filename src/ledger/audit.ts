import {
  type Checkpoint,
  parseCheckpoint,
  parseNote,
  parseVerifierKey,
  verifyNote,
} from '../../client/src/ledger-proof.ts'
import { FormatError } from '../../client/src/ledger-text.ts'
import type { Context, Reading } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { openSnapshot } from '../db/snapshot.ts'
import { leafData } from './entry.ts'
import { type LedgerKey, listLedgerKeys } from './keys.ts'
import type { AnswerPlace, StoredEntry } from './ledger.ts'
import { formatVerifierKey, organizationOfOrigin } from './note.ts'
import { type Answer, entryOf, readAnswersBetween } from './seal.ts'
import {
  beginAuditSql,
  findForeignAddressAnswersSql,
  findForeignAnswersSql,
  findForeignTextsSql,
  readEntryRangeSql,
  readTilesSql,
} from './sql.ts'
import {
  type FullTile,
  fullTiles,
  GrowingTree,
  hashBytes,
  keyOfTile,
  levelsOf,
  subtreeRoot,
  type TileId,
  tileBytes,
  tileWidth,
  writeLeafHash,
} from './tree.ts'

/** A part of the ledger that was changed after it was sealed. `message` is a sentence. */
type Finding = {
  /**
   * The last two kinds are derived from the ledger: texts, and the answers in force, which decide who may be written
   * to.
   */
  kind: 'entry' | 'answer' | 'tile' | 'checkpoint' | 'text' | 'in_force'
  /** The index of an entry. */
  index?: number
  message: string
}

export type AuditResult = {
  organization: string
  size: number
  /** The root hash that follows from the entries, in base64. */
  root_hash: string
  /** The number of new answers that are not sealed yet. */
  waiting: number
  findings: Finding[]
  /** Whether there are more findings than those listed. */
  has_more: boolean
}

type AuditOptions = {
  /** A checkpoint that was kept elsewhere, as {@link readKeptCheckpoint} verifies it. */
  since?: Checkpoint | undefined
  onProgress?: (done: number, size: number) => void
}

/** The entries that are read at a time. */
const entriesPerPart = 16 * tileWidth
/** The maximum number of answers without a matching entry yet: those of a part, and the rest of its last change. */
const maxOpen = 2 * entriesPerPart
const maxFindings = 100

/**
 * Verifies a checkpoint that was kept elsewhere. Throws a FormatError if it is malformed, belongs to another ledger, or
 * is not signed by a key of this service. An earlier `log_id` of the organization counts as the same ledger, which
 * continues after `kith log renew`.
 */
export async function readKeptCheckpoint(db: Database, organization: string, note: string): Promise<Checkpoint> {
  const checkpoint = await readCheckpoint(note, await listLedgerKeys(db))
  if (organizationOfOrigin(checkpoint.origin) === organization) return checkpoint
  throw new FormatError(`The checkpoint belongs to another ledger, ${checkpoint.origin}.`)
}

/** Verifies a checkpoint by the keys of all ledgers, named by its origin. */
async function readCheckpoint(note: string, keys: LedgerKey[]): Promise<Checkpoint> {
  const checkpoint = parseCheckpoint(parseNote(note).text)
  const texts = keys.map(({ publicKey }) => formatVerifierKey(checkpoint.origin, publicKey))
  await verifyNote(note, await Promise.all(texts.map(parseVerifierKey)))
  return checkpoint
}

/**
 * Seals the answers of an organization again with their stored salts, from one snapshot, and reports the differences
 * from the ledger. It needs little memory at any size.
 */
export async function auditLedger({ db, organization_id }: Context, options: AuditOptions = {}): Promise<AuditResult> {
  const snapshot = await openSnapshot(db)
  try {
    const reading = { db: snapshot, organization_id }
    const [state] = await snapshot.query<State>(beginAuditSql, [organization_id])
    if (!state) throw new Error(`there is no organization ${organization_id}`)
    return await new Audit(reading, state, options).run()
  } finally {
    await snapshot.close()
  }
}

type State = {
  organization: string
  size: number
  edge: Buffer | null
  checkpoint: string | null
  position: number
  entries_beyond: number
  tiles: number
  answers: number
  waiting: number
}

class TooManyFindings extends Error {}

class Audit {
  readonly #reading: Reading
  readonly #state: State
  readonly #options: AuditOptions
  readonly #findings: Finding[] = []
  /** The tree that follows from the entries. */
  readonly #tree = new GrowingTree()
  /** The stored tree, built from its partial tiles. Undefined if these do not fit its size. */
  readonly #storedTree: GrowingTree | undefined
  readonly #storedEdge: ReadonlyMap<string, Buffer>
  /** The answers up to the change `#after` that were not compared with an entry yet. */
  readonly #open = new Map<string, Answer>()
  #after = 0
  #answers = 0

  constructor(reading: Reading, state: State, options: AuditOptions) {
    this.#reading = reading
    this.#state = state
    this.#options = options
    this.#storedTree = treeOf(state)
    const partial = this.#storedTree?.partialTiles() ?? []
    this.#storedEdge = new Map(partial.map(tile => [keyOfTile(tile), tile.data]))
  }

  async run(): Promise<AuditResult> {
    const { organization, size, waiting } = this.#state
    let has_more = false
    try {
      this.#checkCounts()
      for (let from = 0; from < size; from += entriesPerPart)
        await this.#checkPart(from, Math.min(size, from + entriesPerPart))
      await this.#checkRest()
      await this.#checkTop()
      await this.#checkDerived()
    } catch (error) {
      if (!(error instanceof TooManyFindings)) throw error
      has_more = true
    }
    const root_hash = this.#tree.root().toString('base64')
    return { organization, size, root_hash, waiting, findings: this.#findings, has_more }
  }

  #report(kind: Finding['kind'], message: string, index?: number): void {
    if (this.#findings.length === maxFindings) throw new TooManyFindings()
    this.#findings.push({ kind, ...(index !== undefined && { index }), message })
  }

  #checkCounts(): void {
    const { size, entries_beyond: beyond, tiles } = this.#state
    if (beyond > 0) this.#report('entry', `${beyond} stored entries are not among the ${size} sealed ones.`)
    const expected = Array.from({ length: levelsOf(size) }, (_, level) => fullTiles(level, size))
    const count = expected.reduce((sum, each) => sum + each, 0)
    if (tiles !== count) this.#report('tile', `${tiles} full tiles are stored, but ${size} entries have ${count}.`)
  }

  /** Compares entries with their answers and their tiles. The first entry begins a tile. */
  async #checkPart(from: number, to: number): Promise<void> {
    const { db, organization_id } = this.#reading
    const read = await db.query<StoredEntry>(readEntryRangeSql, [organization_id, from, to])
    const last = Math.min(read.at(-1)?.sequence ?? 0, this.#state.position)
    await this.#readAnswers(last)
    const entries = new Map(read.map(entry => [entry.index, entry]))
    for (let start = from; start < to; start += tileWidth)
      await this.#checkBlock(start, Math.min(start + tileWidth, to), entries)
    // The next part may contain the rest of the last change.
    this.#reportUnsealed(last)
    this.#options.onProgress?.(to, this.#state.size)
  }

  async #readAnswers(until: number): Promise<void> {
    while (this.#after < until && this.#open.size < maxOpen) {
      const { answers, last } = await readAnswersBetween(this.#reading, this.#after, until)
      for (const answer of answers) this.#open.set(keyOfAnswer(answer), answer)
      this.#answers += answers.length
      this.#after = last
    }
  }

  /** Reports the changes before this one whose answers have no entry. */
  #reportUnsealed(before: number): void {
    const unsealed = [...this.#open].filter(([, { sequence }]) => sequence < before)
    for (const [key] of unsealed) this.#open.delete(key)
    for (const sequence of new Set(unsealed.map(([, answer]) => answer.sequence)))
      this.#report('answer', `An answer of change ${sequence} is not in the ledger.`)
  }

  /** Reports the answers after the last entry and up to the position, and the answers without a change. */
  async #checkRest(): Promise<void> {
    const { position, answers, waiting } = this.#state
    do {
      await this.#readAnswers(position)
      this.#reportUnsealed(position + 1)
    } while (this.#after < position)
    const strays = answers - waiting - this.#answers
    if (strays > 0) this.#report('answer', `The consent history has answers that belong to no change: ${strays}.`)
  }

  /** Checks the entries of one tile of the lowest level. Continues with the hashes that the tile above confirms. */
  async #checkBlock(start: number, end: number, entries: ReadonlyMap<number, StoredEntry>): Promise<void> {
    const computed = Buffer.alloc((end - start) * hashBytes)
    for (let index = start; index < end; index++) {
      const entry = entries.get(index)
      if (entry) writeLeafHash(entry.hash, 0, computed, (index - start) * hashBytes)
      else this.#report('entry', `Entry ${index} is missing.`, index)
    }
    const sealed = await this.#sealedHashes(start / tileWidth, computed)
    for (let index = start; index < end; index++) {
      const at = (index - start) * hashBytes
      const leafHash = sealed.subarray(at, at + hashBytes)
      const entry = entries.get(index)
      if (entry) this.#checkEntry(entry, leafHash)
      this.#checkSince()
      for (const tile of this.#tree.append(leafHash))
        if (tile.level > 0) this.#compareTile(tile, await this.#readTile(tile))
    }
  }

  /**
   * The hashes of a tile of leaves as they were sealed. The stored tile is right if the tile above or the checkpoint
   * confirms it. Otherwise the hashes computed from the entries count.
   */
  async #sealedHashes(index: number, computed: Buffer): Promise<Buffer> {
    const id = { level: 0, index }
    const stored = await this.#readTile(id)
    if (stored?.length === computed.length && (stored.equals(computed) || (await this.#isConfirmed(index, stored))))
      return stored
    this.#compareTile({ ...id, data: computed }, stored)
    return computed
  }

  async #isConfirmed(index: number, stored: Buffer): Promise<boolean> {
    if (stored.length < tileBytes) return this.#storedTree?.root().equals(this.#claimedRoot()) === true
    const above = await this.#readTile({ level: 1, index: Math.floor(index / tileWidth) })
    const at = (index % tileWidth) * hashBytes
    return above?.subarray(at, at + hashBytes).equals(subtreeRoot(stored)) === true
  }

  /** The root hash that the stored checkpoint states. Its signature is not checked. */
  #claimedRoot(): Uint8Array {
    try {
      return parseCheckpoint(parseNote(this.#state.checkpoint ?? '').text).rootHash
    } catch {
      return Buffer.alloc(0)
    }
  }

  /** The stored tile: a full one, or a partial one of the edge. */
  async #readTile({ level, index }: TileId): Promise<Buffer | undefined> {
    if (index >= fullTiles(level, this.#state.size)) return this.#storedEdge.get(keyOfTile({ level, index }))
    const { db, organization_id } = this.#reading
    return (await db.query<{ data: Buffer }>(readTilesSql, [organization_id, [level], [index]]))[0]?.data
  }

  #compareTile(computed: FullTile, stored: Buffer | undefined): void {
    if (stored?.equals(computed.data)) return
    const reason = stored ? 'was changed' : 'is missing'
    this.#report('tile', `Tile ${keyOfTile(computed)} ${reason}.`)
  }

  /** Compares an entry with its answer, and with its sealed leaf. */
  #checkEntry(entry: StoredEntry, leafHash: Buffer): void {
    const key = keyOfAnswer(entry)
    const answer = this.#open.get(key)
    this.#open.delete(key)
    const { index, salt, hash } = entry
    const data = answer && salt ? leafData(salt, entryOf(this.#state.organization, answer)) : undefined
    const isSealed = leafHashOf(hash).equals(leafHash)
    const say = (what: string) => this.#report('entry', `${nameOf(entry)}: ${what}.`, index)
    if (salt && !answer) say('its answer is missing')
    else if (answer && !salt) say('its salt is missing, although its answer is stored')
    else if (!isSealed && (!data || leafHashOf(data).equals(leafHash))) say('its stored hash was changed')
    else if (!isSealed) say('its answer or salt, and its stored hash were changed')
    else if (data && !data.equals(hash)) say('its answer or its salt was changed')
  }

  /** Compares the root hash with the kept checkpoint when the tree reaches its size. */
  #checkSince(): void {
    const { since } = this.#options
    if (since?.size !== this.#tree.size || this.#tree.root().equals(since.rootHash)) return
    this.#report(
      'checkpoint',
      `The ledger does not begin with the ${since.size} entries of the kept checkpoint: its first entries were rewritten.`,
    )
  }

  /** Compares the partial tiles, the checkpoint and the kept checkpoint with the entries. */
  async #checkTop(): Promise<void> {
    const { size, edge, checkpoint } = this.#state
    const { since } = this.#options
    this.#checkSince()
    if (since && since.size > size)
      this.#report(
        'checkpoint',
        `The kept checkpoint has ${since.size} entries, but the ledger has only ${size}: entries were removed.`,
      )
    if (size === 0) return
    if (this.#storedEdge.size === 0 && edge?.length !== 0)
      this.#report('tile', `The partial tiles are not those of ${size} entries.`)
    else
      for (const tile of this.#tree.partialTiles())
        if (tile.level > 0) this.#compareTile(tile, this.#storedEdge.get(keyOfTile(tile)))
    await this.#checkCheckpoint(checkpoint ?? '')
  }

  /**
   * Checks the data derived from the sealed answers: their texts, and the answers in force, which decide who may be
   * written to.
   */
  async #checkDerived(): Promise<void> {
    const { db, organization_id } = this.#reading
    const values = [organization_id, maxFindings + 1]
    for (const { consent_type_id, version } of await db.query<FoundText>(findForeignTextsSql, values))
      this.#report('text', `Text ${version} of consent type ${consent_type_id} was changed.`)
    // If the history was changed, these findings would only repeat that.
    if (this.#findings.length > 0) return
    const sayForeign = (whose: string, { consent_type_id, channel }: AnsweredPurpose) =>
      this.#report(
        'in_force',
        `The answer ${whose} (consent type ${consent_type_id}, ${channel}) is not that of the history.`,
      )
    for (const found of await db.query<AnsweredPurpose & { person_id: string }>(findForeignAnswersSql, values))
      sayForeign(`in force of person ${found.person_id}`, found)
    for (const found of await db.query<AnswerPlace>(findForeignAddressAnswersSql, values))
      sayForeign(`for an address of change ${found.sequence}`, found)
  }

  async #checkCheckpoint(note: string): Promise<void> {
    const { size, organization } = this.#state
    const say = (message: string) => this.#report('checkpoint', message)
    try {
      const checkpoint = await readCheckpoint(note, await listLedgerKeys(this.#reading.db))
      if (organizationOfOrigin(checkpoint.origin) !== organization)
        say(`The stored checkpoint belongs to another ledger, ${checkpoint.origin}.`)
      else if (checkpoint.size !== size) say(`The stored checkpoint has ${checkpoint.size} entries, not ${size}.`)
      else if (!this.#tree.root().equals(checkpoint.rootHash))
        say('The root hash of the stored checkpoint does not follow from the entries.')
    } catch (error) {
      if (!(error instanceof FormatError)) throw error
      say(`The stored checkpoint was changed. ${error.message}`)
    }
  }
}

type AnsweredPurpose = Pick<AnswerPlace, 'consent_type_id' | 'channel'>
type FoundText = { consent_type_id: number; version: number }

const keyOfAnswer = ({ sequence, consent_type_id, channel }: AnswerPlace) => `${sequence} ${consent_type_id} ${channel}`

const nameOf = ({ index, sequence, consent_type_id, channel }: StoredEntry) =>
  `Entry ${index} (change ${sequence}, consent type ${consent_type_id}, ${channel})`

function treeOf({ size, edge }: State): GrowingTree | undefined {
  try {
    return edge ? new GrowingTree(size, edge) : undefined
  } catch {
    return undefined
  }
}

/** The hash of a leaf, from its data. */
function leafHashOf(data: Buffer): Buffer {
  const hash = Buffer.alloc(hashBytes)
  writeLeafHash(data, 0, hash, 0)
  return hash
}
