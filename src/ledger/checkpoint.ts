import { isKeyName } from './note.ts'
import { decodeBase64, FormatError, parseDecimal } from './strict-text.ts'

/** Checkpoints of https://c2sp.org/tlog-checkpoint: the text of a note that states the size and the root hash of a log. */

/** A state of a log. `extensions` are lines that other logs add; kith writes none. */
export type Checkpoint = { origin: string; size: number; rootHash: Buffer; extensions: string[] }

const hashBytes = 32

/** Formats the text of a checkpoint, to be signed as a note. Throws a FormatError for an origin that cannot be a key's name. */
export function formatCheckpoint({ origin, size, rootHash }: Omit<Checkpoint, 'extensions'>): string {
  if (!isKeyName(origin))
    throw new FormatError('The origin of a log is not empty and has no spaces, control characters and plus signs.')
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`${size} is not the size of a log`)
  if (rootHash.length !== hashBytes) throw new RangeError(`a root hash has ${hashBytes} bytes, not ${rootHash.length}`)
  return `${origin}\n${size}\n${rootHash.toString('base64')}\n`
}

/** Parses the text of a checkpoint: that of a verified note, with its last newline. Throws a FormatError. */
export function parseCheckpoint(text: string): Checkpoint {
  const lines = text.split('\n')
  if (lines.pop() !== '') throw new FormatError('The checkpoint does not end with a newline.')
  const [origin, sizeText, rootText, ...extensions] = lines
  if (origin === undefined || sizeText === undefined || rootText === undefined)
    throw new FormatError('A checkpoint has three lines: origin, size and root hash.')
  if (lines.includes('')) throw new FormatError('The checkpoint contains an empty line.')
  const size = parseDecimal(sizeText)
  if (size === undefined)
    throw new FormatError('The size of the checkpoint is not a decimal number up to 2^53 - 1 without leading zeros.')
  const rootHash = decodeBase64(rootText)
  if (rootHash?.length !== hashBytes)
    throw new FormatError(`The root hash of the checkpoint is not base64 of ${hashBytes} bytes.`)
  return { origin, size, rootHash, extensions }
}
