import type { Context } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import type { Signal } from '../process/signal.ts'
import type { Channel } from '../values/channels.ts'
import { refuse } from '../values/errors.ts'
import { type LedgerSigner, listLedgerKeys, readLedgerSigner } from './keys.ts'
import { formatCheckpoint, formatVerifierKey, signNote } from './note.ts'
import { countAllEntriesSql, findEntrySql, readLeavesSql, readLedgerSql, readLogNameSql, readTilesSql } from './sql.ts'
import {
  consistencyRanges,
  fullTiles,
  GrowingTree,
  hashBytes,
  inclusionRanges,
  keyOfTile,
  type LeafRange,
  nodeOf,
  rangeHash,
  type TileId,
  tilesOf,
  tileWidth,
} from './tree.ts'

/**
 * The sealed state of an organization's ledger. `edge` has the hashes of the partial tiles. `checkpoint` is a signed
 * note.
 */
export type Ledger = { size: number; edge: Buffer; checkpoint: string; sealed_at: string | null }

/** The position of an answer: the number of its change, and its question. */
export type AnswerPlace = { sequence: number; consent_type_id: number; channel: Channel }

/** A stored entry. The salt of an erased answer is null. */
export type StoredEntry = AnswerPlace & { index: number; salt: Buffer | null; hash: Buffer }

/** The origin of a ledger's checkpoints, which is also the name of its keys: `<name>/<organization>/<log_id>`. */
export async function readOrigin({ db, organization_id }: Context, name: string, signal?: Signal): Promise<string> {
  const [row] = await db.query<{ organization: string; log_id: string }>(readLogNameSql, [organization_id], signal)
  if (!row) throw new Error(`there is no organization ${organization_id}`)
  return `${name}/${row.organization}/${row.log_id}`
}

/** Signs a state of a tree. Ed25519 signatures are deterministic: the same state always has the same checkpoint. */
export function signCheckpoint(origin: string, tree: GrowingTree, { privateKey }: LedgerSigner): string {
  return signNote(formatCheckpoint({ origin, size: tree.size, rootHash: tree.root() }), [{ name: origin, privateKey }])
}

/** Reads the sealed state. The checkpoint of an empty ledger is signed on each read. `name` begins the origin. */
export async function readLedger(context: Context, name: string, signal?: Signal): Promise<Ledger> {
  const { db } = context
  const stored = await readStoredLedger(context, signal)
  if (stored) return stored
  const [origin, signer] = await Promise.all([readOrigin(context, name, signal), readLedgerSigner(db, signal)])
  return {
    size: 0,
    edge: Buffer.alloc(0),
    checkpoint: signCheckpoint(origin, new GrowingTree(), signer),
    sealed_at: null,
  }
}

/** Reads the sealed state, or undefined if nothing is sealed yet. */
export async function readStoredLedger({ db, organization_id }: Context, signal?: Signal): Promise<Ledger | undefined> {
  const [ledger] = await db.query<Ledger>(readLedgerSql, [organization_id], signal)
  return ledger
}

/** The number of entries of all ledgers. */
export async function countEntries(db: Database): Promise<number> {
  const [row] = await db.query<{ entries: number }>(countAllEntriesSql, [])
  return row!.entries
}

/** The keys of a ledger as note keys, `name+hash+base64`, newest first. */
export async function readVerifierKeys(
  context: Context,
  name: string,
  signal?: Signal,
): Promise<{ key: string; created_at: string; retired_at: string | null }[]> {
  const { db } = context
  const [origin, keys] = await Promise.all([readOrigin(context, name, signal), listLedgerKeys(db, signal)])
  return keys.map(({ publicKey, created_at, retired_at }) => ({
    key: formatVerifierKey(origin, publicKey),
    created_at,
    retired_at,
  }))
}

/** Finds the entry of an answer. Returns undefined until the answer is sealed. */
export async function findEntry(
  { db, organization_id }: Context,
  { sequence, consent_type_id, channel }: AnswerPlace,
  signal?: Signal,
): Promise<StoredEntry | undefined> {
  const values = [organization_id, sequence, consent_type_id, channel]
  const [entry] = await db.query<StoredEntry>(findEntrySql, values, signal)
  return entry
}

/** Reads tiles of a sealed state, by {@link keyOfTile}: the stored full ones, and the partial ones of its edge. */
async function readTiles(
  { db, organization_id }: Context,
  { size, edge }: Pick<Ledger, 'size' | 'edge'>,
  ids: TileId[],
  signal?: Signal,
): Promise<Map<string, Buffer>> {
  const tiles = new Map(new GrowingTree(size, edge).partialTiles().map(tile => [keyOfTile(tile), tile.data]))
  const stored = ids.filter(({ level, index }) => index < fullTiles(level, size))
  if (stored.length === 0) return tiles
  const values = [organization_id, stored.map(({ level }) => level), stored.map(({ index }) => index)]
  const rows = await db.query<TileId & { data: Buffer }>(readTilesSql, values, signal)
  for (const row of rows) tiles.set(keyOfTile(row), row.data)
  return tiles
}

async function hashRanges(
  context: Context,
  { ledger, ranges }: { ledger: Ledger; ranges: LeafRange[] },
  signal?: Signal,
): Promise<Buffer[]> {
  const tiles = await readTiles(context, ledger, tilesOf(ranges), signal)
  return ranges.map(range => rangeHash(range, tiles))
}

/** The root hash of a tree. The root of an empty tree does not come from tiles. */
const rootRange = (size: number): LeafRange[] => (size === 0 ? [] : [{ from: 0, to: size }])
const rootOf = (roots: Buffer[]) => roots[0] ?? new GrowingTree().root()

/** Proves that the entry `index` is in the tree of `size` entries: the leaf's hash, the proof and the root hash. */
export async function proveInclusion(
  context: Context,
  { ledger, index, size = ledger.size }: { ledger: Ledger; index: number; size?: number },
  signal?: Signal,
): Promise<{ leafHash: Buffer; hashes: Buffer[]; rootHash: Buffer }> {
  const path = inclusionRanges(index, size)
  const ranges = [{ from: index, to: index + 1 }, ...path]
  const [leafHash, ...hashes] = await hashRanges(context, { ledger, ranges }, signal)
  // The path leads to the root. Hashing the whole tree from its tiles would take as long as the proof.
  const rootHash = hashes.reduce(
    (node, hash, position) => (path[position]!.from > index ? nodeOf(node, hash) : nodeOf(hash, node)),
    leafHash!,
  )
  return { leafHash: leafHash!, hashes, rootHash }
}

/** Proves that the tree of `newSize` entries begins with the tree of `oldSize`: the proof and both root hashes. */
export async function proveConsistency(
  context: Context,
  { ledger, oldSize, newSize }: { ledger: Ledger; oldSize: number; newSize: number },
  signal?: Signal,
): Promise<{ hashes: Buffer[]; oldRootHash: Buffer; newRootHash: Buffer }> {
  const parts = [rootRange(oldSize), rootRange(newSize), consistencyRanges(oldSize, newSize)]
  const found = await hashRanges(context, { ledger, ranges: parts.flat() }, signal)
  const [old, next, hashes] = parts.map(part => found.splice(0, part.length))
  return { hashes: hashes!, oldRootHash: rootOf(old!), newRootHash: rootOf(next!) }
}

/** A tile named by its path: hashes of a level, or the data of entries. `width` is 256, or less for a partial tile. */
export type TileName = { level: number | 'entries'; index: number; width: number }

const maxLevel = 63
const tilePath = /^(0|[1-9]\d|[1-9]|entries)\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/

/** Parses a tile path of https://c2sp.org/tlog-tiles, `<level>/<index>[.p/<width>]`. Undefined for any other text. */
export function parseTilePath(text: string): TileName | undefined {
  const [, levelText, indexText, widthText] = tilePath.exec(text) ?? []
  if (levelText === undefined || indexText === undefined) return undefined
  // A path has no leading groups of zeros in its index.
  if (indexText.startsWith('x000')) return undefined
  const level = levelText === 'entries' ? 'entries' : Number(levelText)
  const index = Number(indexText.replaceAll(/[x/]/g, ''))
  const width = widthText === undefined ? tileWidth : Number(widthText)
  if ((level !== 'entries' && level > maxLevel) || !Number.isSafeInteger(index)) return undefined
  if (widthText !== undefined && width >= tileWidth) return undefined
  return { level, index, width }
}

const outside = (message: string): never =>
  refuse('not_found', `The ledger has no such tile: ${message}.`, { details: [{ path: '/tile', message }] })

/**
 * Reads a tile, or a bundle of entries, as tlog-tiles defines them. Throws a Fault of 404 for a tile beyond the ledger.
 */
export async function readTile(context: Context, name: TileName, signal?: Signal): Promise<Buffer> {
  const ledger = (await readStoredLedger(context, signal)) ?? { size: 0, edge: Buffer.alloc(0) }
  const level = name.level === 'entries' ? 0 : name.level
  const available = Math.floor(ledger.size / tileWidth ** level) - name.index * tileWidth
  if (available <= 0) outside(`the ledger has ${ledger.size} entries`)
  if (name.width > available) outside(`it is ${available} wide`)
  if (name.level === 'entries') return readBundle(context, name, signal)
  const id = { level, index: name.index }
  const tiles = await readTiles(context, ledger, [id], signal)
  const data = tiles.get(keyOfTile(id))
  if (!data) throw new Error(`the tile ${keyOfTile(id)} is not stored`)
  return data.subarray(0, name.width * hashBytes)
}

const lengthBytes = 2

/** The data of the leaves, each prefixed with its length. */
async function readBundle({ db, organization_id }: Context, { index, width }: TileName, signal?: Signal) {
  const from = index * tileWidth
  const values = [organization_id, from, from + width]
  const [row] = await db.query<{ leaves: Buffer | null }>(readLeavesSql, values, signal)
  const { leaves } = row ?? {}
  if (leaves?.length !== width * hashBytes) throw new Error(`entries from ${from} on are not stored`)
  const bundle = Buffer.alloc(width * (lengthBytes + hashBytes))
  for (let entry = 0; entry < width; entry++) {
    const at = bundle.writeUInt16BE(hashBytes, entry * (lengthBytes + hashBytes))
    leaves.copy(bundle, at, entry * hashBytes, (entry + 1) * hashBytes)
  }
  return bundle
}
