import { yieldIfDue } from '../../process/event-loop.ts'
import { refuse } from '../../values/errors.ts'

// The decoder skips one byte order mark at the beginning. A second one is refused as invalid JSON.
const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * The text of a body, without one leading byte order mark. Throws a Fault of 400 that names the first byte that is not
 * UTF-8.
 */
export function decodeBody(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throwUndecodable(offsetOfInvalid(bytes), cause)
  }
}

/** Decoding this many bytes takes up to 5 ms. */
const decodedInAStep = 1_048_576

/** As {@link decodeBody}, for a large body: yields to the event loop between pieces. */
export async function decodeLargeBody(bytes: Buffer): Promise<string> {
  if (bytes.length <= decodedInAStep) return decodeBody(bytes)
  const stepwise = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  for (let start = 0; start < bytes.length; start += decodedInAStep) {
    await yieldIfDue()
    const end = start + decodedInAStep
    try {
      text += stepwise.decode(bytes.subarray(start, end), { stream: end < bytes.length })
    } catch (cause) {
      // The character that cannot be decoded may have begun in the previous piece.
      let from = start
      while (from > 0 && start - from < 3 && (bytes[from]! & 0xc0) === 0x80) from--
      throwUndecodable(from + offsetOfInvalid(bytes.subarray(from, end)), cause)
    }
  }
  return text
}

function throwUndecodable(offset: number, cause: unknown): never {
  refuse('failed_binding_json', `The body is not UTF-8: byte ${offset} cannot be decoded.`, { cause })
}

/** The offset of the first byte that differs when the decoded text is encoded again. */
function offsetOfInvalid(bytes: Buffer): number {
  const encoded = Buffer.from(bytes.toString())
  let offset = 0
  while (bytes[offset] === encoded[offset]) offset++
  return offset
}
