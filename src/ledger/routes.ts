import type { Config } from '../process/config.ts'
import type { Call } from '../route/call.ts'
import { dataOf, type Route, route } from '../route/route.ts'
import { refuse, refuseValues } from '../values/errors.ts'
import { parseTilePath, proveConsistency, proveInclusion, readLedger, readTile, readVerifierKeys } from './ledger.ts'
import {
  checkpointText,
  consistencyProof,
  inclusionProof,
  ledgerKeys,
  type SizeQuery,
  sizeQuery,
  tileBytes,
} from './schema.ts'

const textType = 'text/plain; charset=utf-8'
const bytesType = 'application/octet-stream'

/** Reading a ledger needs a token, so shared caches must store nothing. */
const changing = { 'Cache-Control': 'private, max-age=1' }
const immutable = { 'Cache-Control': 'private, max-age=31536000, immutable' }

const throwInvalid = (path: string, message: string): never => refuseValues({ path, message })

const printHashes = (hashes: Buffer[]) => hashes.map(hash => hash.toString('base64'))

/** The route table of the ledger. `ledgerOrigin` begins the origin of each ledger. */
export function ledgerRoutes({ ledgerOrigin }: Pick<Config, 'ledgerOrigin'>): Route[] {
  const shared = { method: 'GET', scope: 'consents:read', tag: 'Ledger' } as const
  const readSealed = ({ context, signal }: Call<unknown>) => readLedger(context, ledgerOrigin, signal)
  return [
    route({
      ...shared,
      path: '/v1/ledger/checkpoint',
      operationId: 'getCheckpoint',
      summary: 'Read the newest checkpoint of the ledger',
      description:
        'The size and the root hash of the ledger, signed. Answers are sealed within a second. Keep checkpoints elsewhere: they prove ' +
        'that the ledger was not rewritten since. See docs/ledger.md.',
      answer: checkpointText,
      answerType: textType,
      handle: async call => {
        const { checkpoint } = await readSealed(call)
        return { status: 200, headers: changing, body: checkpoint, contentType: textType }
      },
    }),
    route({
      ...shared,
      path: '/v1/ledger/tile/{tile}',
      params: { tile: 'path' },
      operationId: 'getTile',
      summary: 'Read a tile of the ledger',
      description:
        'C2SP tlog-tiles: `<level>/<index>` for 256 hashes of the tree, `entries/<index>` for the data of 256 entries, and `.p/<width>` after ' +
        'it for a partial tile. The index has groups of three digits, `x001/x234/067`. The data of an entry is SHA-256 of a salt and the answer, ' +
        'so tiles tell nothing about anybody.',
      answer: tileBytes,
      answerType: bytesType,
      handle: async ({ context, params, signal }) => {
        const name =
          parseTilePath(params.tile!) ??
          throwInvalid('/tile', 'must be a tile such as 0/x001/234, entries/000 or 1/000.p/17')
        const body = await readTile(context, name, signal)
        return { status: 200, headers: immutable, body, contentType: bytesType }
      },
    }),
    route({
      ...shared,
      path: '/v1/ledger/keys',
      operationId: 'listLedgerKeys',
      summary: 'List the keys of the ledger',
      description: 'The note keys that verify checkpoints: the one that signs now, and all earlier ones.',
      answer: ledgerKeys,
      handle: dataOf(async ({ context, signal }) => ({ keys: await readVerifierKeys(context, ledgerOrigin, signal) })),
    }),
    route<SizeQuery>({
      ...shared,
      path: '/v1/ledger/inclusion/{index}',
      params: { index: 'count' },
      operationId: 'proveInclusion',
      summary: 'Prove that an entry is in the ledger',
      query: sizeQuery,
      answer: inclusionProof,
      handle: async call => {
        const ledger = await readSealed(call)
        const index = Number(call.params.index)
        const size = call.body.size ?? ledger.size
        throwIfBeyond('/size', size, ledger.size)
        const message = `is not in the tree of ${size} entries, whose indexes begin with 0`
        if (index >= size)
          refuse('not_found', 'The ledger has no such entry.', { details: [{ path: '/index', message }] })
        const proof = await proveInclusion(call.context, { ledger, index, size }, call.signal)
        const [leaf_hash, root_hash] = printHashes([proof.leafHash, proof.rootHash])
        return { status: 200, data: { index, size, leaf_hash, hashes: printHashes(proof.hashes), root_hash } }
      },
    }),
    route<SizeQuery>({
      ...shared,
      path: '/v1/ledger/consistency/{old_size}',
      params: { old_size: 'count' },
      operationId: 'proveConsistency',
      summary: 'Prove that the ledger only grew',
      description: 'Proves that the tree of `size` entries begins with the tree of `old_size` entries.',
      query: sizeQuery,
      answer: consistencyProof,
      handle: async call => {
        const ledger = await readSealed(call)
        const oldSize = Number(call.params.old_size)
        const size = call.body.size ?? ledger.size
        throwIfBeyond('/size', size, ledger.size)
        throwIfBeyond('/old_size', oldSize, size)
        const proof = await proveConsistency(call.context, { ledger, oldSize, newSize: size }, call.signal)
        const [old_root_hash, root_hash] = printHashes([proof.oldRootHash, proof.newRootHash])
        const hashes = printHashes(proof.hashes)
        return { status: 200, data: { old_size: oldSize, size, old_root_hash, hashes, root_hash } }
      },
    }),
  ]
}

function throwIfBeyond(path: string, size: number, max: number): void {
  if (size > max) throwInvalid(path, `is beyond the size of the ledger, ${max}`)
}
