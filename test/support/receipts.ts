import { createHash, createPrivateKey } from 'node:crypto'
import { leafData } from '../../src/ledger/entry.ts'
import { formatCheckpoint, signNote } from '../../src/ledger/note.ts'
import type { Receipt } from '../../src/ledger/receipts.ts'
import { buildReceipt, type ReceiptNames } from '../../src/ledger/receipts.ts'
import type { LedgerEntry } from '../../src/ledger/schema.ts'
import { GrowingTree, inclusionRanges, keyOfTile, rangeHash } from '../../src/ledger/tree.ts'
import { leafHash } from './merkle-trees.ts'

const sha256 = (text: string) => createHash('sha256').update(text).digest()

/** An Ed25519 key that is the same in every run, so that a receipt is too. */
export function fixedKey(seed: string) {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), sha256(seed)])
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
}

export const origin = 'kith.example.org/shop/01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e50'
export const text = 'Yes, send me the newsletter. I can unsubscribe at any time.'

export const entry: LedgerEntry = {
  organization: 'shop',
  sequence: 41,
  person_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  consent_type_id: 1,
  channel: 'email',
  state: true,
  superseded: false,
  at: '2026-11-22T08:15:31.224Z',
  collected_at: '2026-11-22T08:15:30.000Z',
  method: 'web_form',
  source: 'https://shop.example/newsletter',
  text_version: 1,
  text_sha256: sha256(text).toString('hex'),
  ip: '192.0.2.7',
  actor: 'website',
  request_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e51',
}

export const names: ReceiptNames = {
  consent_type: { key: 'newsletter', name: 'Newsletter', description: null },
  text: {
    version: 1,
    language: 'en',
    text,
    url: 'https://shop.example/newsletter',
    created_at: '2026-11-01T09:00:00.000Z',
  },
}

export type Parts = { entry?: LedgerEntry; names?: ReceiptNames; size?: number; index?: number; seed?: string }

/** The receipt of an entry in a log of some other entries. The same parts give the same receipt. */
export function receiptOf(parts: Parts = {}): Promise<Receipt> {
  const { size = 7, index = 4, seed = 'key' } = parts
  const privateKey = fixedKey(seed)
  const salt = sha256('salt')
  const tree = new GrowingTree()
  const sealed = leafHash(leafData(salt, parts.entry ?? entry))
  for (let leaf = 0; leaf < size; leaf++) tree.append(leaf === index ? sealed : leafHash(sha256(`entry ${leaf}`)))
  const tiles = new Map(tree.partialTiles().map(tile => [keyOfTile(tile), tile.data]))
  const hashes = inclusionRanges(index, size).map(range => rangeHash(range, tiles))
  const note = formatCheckpoint({ origin, size, rootHash: tree.root() })
  return buildReceipt({
    entry: parts.entry ?? entry,
    salt,
    origin,
    proof: { index, hashes, checkpoint: signNote(note, [{ name: origin, privateKey }]) },
    names: parts.names ?? names,
    created: '2026-11-22T10:00:00.000Z',
    signer: { kid: 'example', privateKey },
  })
}
