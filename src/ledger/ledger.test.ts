import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { isIncluded, parseCheckpoint, parseVerifierKey, verifyNote } from '../../client/src/ledger-proof.ts'
import { sealLedgers } from '../../test/support/ledger.ts'
import { isConsistent } from '../../test/support/merkle-trees.ts'
import { isWhole } from '../../test/support/runs.ts'
import { type Organization, useService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'
import { formatTilePath } from '../../test/support/tile-paths.ts'
import { renewLogId } from '../changes/log-id.ts'
import { contextOf } from '../db/context.ts'
import { rotateLedgerKey } from './keys.ts'

const service = useService()

const sha256 = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest()

/** The root of a list of leaf hashes by RFC 6962. */
function rootOf(hashes: Buffer[]): Buffer {
  if (hashes.length === 0) return sha256()
  if (hashes.length === 1) return hashes[0]!
  const split = 2 ** Math.ceil(Math.log2(hashes.length) - 1)
  return sha256(Buffer.of(1), rootOf(hashes.slice(0, split)), rootOf(hashes.slice(split)))
}

const get = async ({ send }: Organization, path: string) => send('GET', `/v1/ledger/${path}`)
const read = async (shop: Organization, path: string) => {
  const reply = await get(shop, path)
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body.data
}
const readKeys = async (shop: Organization): Promise<string[]> =>
  (await read(shop, 'keys')).keys.map(({ key }: { key: string }) => key)
const readCheckpoint = async (shop: Organization) => {
  const note = (await read(shop, 'checkpoint')).toString()
  const text = await verifyNote(note, await Promise.all((await readKeys(shop)).map(parseVerifierKey)))
  const { rootHash, ...checkpoint } = parseCheckpoint(text)
  return { note, ...checkpoint, rootHash: Buffer.from(rootHash) }
}
const buffersOf = (hashes: string[]) => hashes.map(hash => Buffer.from(hash, 'base64'))
const hashesOf = (tile: Buffer) =>
  Array.from({ length: tile.length / 32 }, (_, n) => tile.subarray(n * 32, n * 32 + 32))

let people = 0
/** Creates people with one answer each. */
async function answer({ send }: Organization, count: number) {
  for (let left = count; left > 0; left -= 100) {
    const operations = Array.from({ length: Math.min(left, 100) }, () => ({
      op: 'create',
      body: {
        external_id: `p${++people}`,
        consents: [{ consent_type_id: 1, channel: people % 2 ? 'email' : 'sms', state: people % 3 > 0 }],
      },
    }))
    expect((await send('POST', '/v1/people/batch', { operations })).status).toBe(200)
  }
}

describe('a ledger of 600 answers', { timeout: 120_000 }, () => {
  const last = 600
  /** Every size, or in `npm test` the small sizes, those around a full tile, and some between. */
  const sizes = Array.from({ length: last }, (_, index) => index + 1).filter(
    size => isWhole || size <= 17 || Math.abs(((size + 128) % 256) - 128) <= 1 || size % 50 === 0,
  )
  const checkpoints: Awaited<ReturnType<typeof readCheckpoint>>[] = []
  let leaves: Buffer[]
  const roots: Buffer[] = []
  /** The root of the tree of a size. It is computed once for each size, because the tests compare it many times. */
  const rootAt = (size: number) => (roots[size] ??= rootOf(leaves.slice(0, size)))
  const shop = useSharedShop(service)
  beforeAll(async () => {
    for (const size of [1, 2, 100, 255, 256, 257, 511, 512, last]) {
      await answer(shop, size - (checkpoints.at(-1)?.size ?? 0))
      await sealLedgers(service)
      checkpoints.push(await readCheckpoint(shop))
    }
    const tiles = await Promise.all(['0/000', '0/001', '0/002.p/88'].map(path => read(shop, `tile/${path}`)))
    leaves = tiles.flatMap(hashesOf)
  })

  it('has a signed checkpoint of each state, whose root is that of its leaves', () => {
    expect(checkpoints.map(({ size }) => size)).toEqual([1, 2, 100, 255, 256, 257, 511, 512, 600])
    for (const { size, rootHash } of checkpoints) expect(rootHash).toEqual(rootAt(size))
  })

  it('has tiles of every size up to its own, from which the root follows', async () => {
    for (const size of sizes) {
      const [bottom, rest] = [Math.floor(size / 256), size % 256]
      const lower = await Promise.all(
        Array.from({ length: bottom }, (_, index) => read(shop, `tile/${formatTilePath({ level: 0, index })}`)),
      )
      if (rest > 0) lower.push(await read(shop, `tile/${formatTilePath({ level: 0, index: bottom }, rest)}`))
      expect(lower.flatMap(hashesOf)).toEqual(leaves.slice(0, size))
      if (bottom === 0) continue
      const upper = hashesOf(await read(shop, `tile/${formatTilePath({ level: 1, index: 0 }, bottom)}`))
      expect(upper).toEqual(lower.slice(0, bottom).map(tile => rootOf(hashesOf(tile))))
    }
  })

  it('proves entries in the trees of every size', async () => {
    for (const size of sizes)
      for (const index of new Set([7_919 % size, size - 1])) {
        const proof = await read(shop, `inclusion/${index}?size=${size}`)
        const [leafHash, rootHash] = buffersOf([proof.leaf_hash, proof.root_hash])
        expect(leafHash).toEqual(leaves[index])
        expect(rootHash).toEqual(rootAt(size))
        const included = { index, leafHash: leafHash!, size, rootHash: rootHash!, hashes: buffersOf(proof.hashes) }
        expect(await isIncluded(included)).toBe(true)
      }
  })

  it('proves that the tree of every size begins with smaller ones', async () => {
    for (const size of [0, ...sizes])
      for (const oldSize of size % 50 === 0 ? new Set([0, Math.min(1, size), size]) : [Math.floor(size / 2)]) {
        const proof = await read(shop, `consistency/${oldSize}?size=${size}`)
        const [oldRootHash, newRootHash] = buffersOf([proof.old_root_hash, proof.root_hash])
        expect(oldRootHash).toEqual(rootAt(oldSize))
        const trees = { oldSize, oldRootHash: oldRootHash!, newSize: size, newRootHash: newRootHash! }
        expect(isConsistent({ ...trees, hashes: buffersOf(proof.hashes) })).toBe(true)
      }
  })

  it('has bundles of entries, which hash to the leaves', async () => {
    const bundles = await Promise.all(['000', '001', '002.p/88'].map(path => read(shop, `tile/entries/${path}`)))
    const entries = bundles.flatMap((bundle: Buffer) =>
      Array.from({ length: bundle.length / 34 }, (_, n) => bundle.subarray(n * 34, n * 34 + 34)),
    )
    for (const entry of entries) expect(entry.readUInt16BE()).toBe(32)
    expect(entries.map(entry => sha256(Buffer.of(0), entry.subarray(2)))).toEqual(leaves)
  })

  it('sends tiles as bytes that may be kept, and the checkpoint as text that may not', async () => {
    for (const path of ['tile/0/000', 'tile/0/002.p/88', 'tile/entries/000', 'tile/0%2F000']) {
      const { headers } = await get(shop, path)
      expect(headers.get('Content-Type')).toBe('application/octet-stream')
      expect(headers.get('Cache-Control')).toBe('private, max-age=31536000, immutable')
    }
    const { headers } = await get(shop, 'checkpoint')
    expect(headers.get('Content-Type')).toBe('text/plain; charset=utf-8')
    expect(headers.get('Cache-Control')).toBe('private, max-age=1')
  })

  it('uses the newest size unless a proof names one', async () => {
    expect((await read(shop, 'inclusion/599')).size).toBe(600)
    expect((await read(shop, 'consistency/1')).size).toBe(600)
  })

  it.each([
    ['inclusion/600', 404, '/index', 'is not in the tree of 600 entries, whose indexes begin with 0'],
    ['inclusion/1?size=1', 404, '/index', 'is not in the tree of 1 entries, whose indexes begin with 0'],
    ['inclusion/0?size=601', 400, '/size', 'is beyond the size of the ledger, 600'],
    ['inclusion/0?size=-1', 400, '/size', undefined],
    ['inclusion/0?from=1', 400, '/from', undefined],
    ['inclusion/-1', 400, '/index', 'must be a whole number from 0'],
    ['inclusion/01', 400, '/index', 'must be a whole number from 0'],
    ['consistency/601', 400, '/old_size', 'is beyond the size of the ledger, 600'],
    ['consistency/3?size=2', 400, '/old_size', 'is beyond the size of the ledger, 2'],
    ['consistency/3?size=601', 400, '/size', 'is beyond the size of the ledger, 600'],
    ['tile/0/002', 404, '/tile', 'it is 88 wide'],
    ['tile/0/002.p/89', 404, '/tile', 'it is 88 wide'],
    ['tile/0/003.p/1', 404, '/tile', 'the ledger has 600 entries'],
    ['tile/1/000.p/3', 404, '/tile', 'it is 2 wide'],
    ['tile/2/000.p/1', 404, '/tile', 'the ledger has 600 entries'],
    ['tile/63/000', 404, '/tile', 'the ledger has 600 entries'],
    ['tile/entries/002.p/89', 404, '/tile', 'it is 88 wide'],
    ['tile/64/000', 400, '/tile', 'must be a tile such as 0/x001/234, entries/000 or 1/000.p/17'],
    ['tile/0/0', 400, '/tile', 'must be a tile such as 0/x001/234, entries/000 or 1/000.p/17'],
    ['tile/0/000.p/256', 400, '/tile', 'must be a tile such as 0/x001/234, entries/000 or 1/000.p/17'],
    ['tile/0/000/', 400, '/tile', 'must be a tile such as 0/x001/234, entries/000 or 1/000.p/17'],
    ['tile/0/%00', 400, '/tile', undefined],
    ['tile/', 400, '/tile', 'must be a path'],
  ])('refuses %s with %d', async (path, status, faulty, message) => {
    const reply = await get(shop, path)
    expect(reply.status).toBe(status)
    expect(reply.body.error).toBe(status === 404 ? 'not_found' : 'invalid_parameter')
    expect(reply.body.details![0]).toMatchObject({ path: faulty, ...(message && { message }) })
  })

  it('is read with the scope consents:read only', async () => {
    const send = service.sender(await service.tokenFor(shop.key, 'people:read changes:read'))
    for (const path of ['checkpoint', 'keys', 'tile/0/000', 'inclusion/0', 'consistency/0'])
      expect((await send('GET', `/v1/ledger/${path}`)).status).toBe(403)
  })

  it('is that of the organization of the token', async () => {
    const other = await service.organization()
    expect((await get(other, 'tile/0/000.p/1')).status).toBe(404)
    expect((await get(other, 'inclusion/0')).status).toBe(404)
    expect((await readCheckpoint(other)).origin).not.toBe(checkpoints[0]!.origin)
  })
})

it('has a signed checkpoint of no entries before the first answer', async () => {
  const shop = await service.organization()
  await shop.send('POST', '/v1/people', { external_id: 'silent' })
  await sealLedgers(service)
  const { size, rootHash, note } = await readCheckpoint(shop)
  expect([size, rootHash]).toEqual([0, rootOf([])])
  expect((await readCheckpoint(shop)).note).toBe(note)
})

it('names its origin by the setting, the organization and the log', async () => {
  const shop = await service.organization()
  const [{ log_id }] = (await service.sql<{ log_id: string }>(
    'select log_id from change_heads where organization_id = $1',
    [shop.id],
  )) as [{ log_id: string }]
  expect((await readCheckpoint(shop)).origin).toBe(`kith/${shop.key}/${log_id}`)
})

it('goes on under a new origin after the log got a new id', async () => {
  const shop = await service.organization()
  await answer(shop, 2)
  await sealLedgers(service)
  const before = await readCheckpoint(shop)
  const { log_id } = await renewLogId(contextOf(service.db, shop.id))
  await answer(shop, 1)
  await sealLedgers(service)
  const after = await readCheckpoint(shop)
  expect(after).toMatchObject({ origin: `kith/${shop.key}/${log_id}`, size: 3 })
  expect((await read(shop, 'consistency/2')).old_root_hash).toBe(before.rootHash.toString('base64'))
})

it('signs with a new key after a rotation, and still lists the key of earlier checkpoints', async () => {
  const shop = await service.organization()
  await answer(shop, 1)
  await sealLedgers(service)
  const before = await readCheckpoint(shop)
  const [oldKey] = await readKeys(shop)
  await rotateLedgerKey(service.db)
  expect((await readCheckpoint(shop)).note).toBe(before.note)
  await answer(shop, 1)
  await sealLedgers(service)
  const keys = (await read(shop, 'keys')).keys
  expect(keys.map(({ retired_at }: { retired_at: string | null }) => retired_at === null)).toEqual([
    true,
    ...keys.slice(1).map(() => false),
  ])
  expect(keys[1].key).toBe(oldKey)
  const after = await readCheckpoint(shop)
  const [current, retired] = [await parseVerifierKey(keys[0].key), await parseVerifierKey(oldKey!)]
  await verifyNote(after.note, [current])
  await expect(verifyNote(after.note, [retired])).rejects.toThrow('is not signed by the key')
  await verifyNote(before.note, [retired])
  expect(await service.sql('select kid from ledger_keys where private_jwk is not null')).toHaveLength(1)
})
