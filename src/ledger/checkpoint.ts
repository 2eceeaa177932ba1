import { type Checkpoint, isKeyName } from '../../client/src/ledger-proof.ts'
import { FormatError } from '../../client/src/ledger-text.ts'
import { hashBytes } from './tree.ts'

/**
 * Formats the text of a checkpoint (https://c2sp.org/tlog-checkpoint), to be signed as a note. Throws a FormatError for an origin that
 * cannot be a key's name.
 */
export function formatCheckpoint({ origin, size, rootHash }: Checkpoint): string {
  if (!isKeyName(origin))
    throw new FormatError('The origin of a log is not empty and has no spaces, control characters and plus signs.')
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`${size} is not the size of a log`)
  if (rootHash.length !== hashBytes) throw new RangeError(`a root hash has ${hashBytes} bytes, not ${rootHash.length}`)
  return `${origin}\n${size}\n${Buffer.from(rootHash).toString('base64')}\n`
}
