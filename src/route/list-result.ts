import { yieldIfDue } from '../process/event-loop.ts'
import type { EnvelopeResult } from './result.ts'

/** The elements of a long list are joined into chunks of at least this length. */
const pieceCharacters = 64 * 1024

/**
 * A payload with the list `items`, whose elements are made one by one. `rest` is the JSON of its other members. A long
 * list is printed over several turns of the event loop, and sent in chunks.
 */
export async function listResult<T>(
  values: readonly T[],
  elementOf: (value: T, index: number) => object,
  rest: string,
): Promise<Pick<EnvelopeResult, 'status'> & { pieces: string[] }> {
  const pieces: string[] = []
  let piece = '{"items":['
  for (const [index, value] of values.entries()) {
    await yieldIfDue()
    piece += (index > 0 ? ',' : '') + JSON.stringify(elementOf(value, index))
    if (piece.length < pieceCharacters) continue
    pieces.push(piece)
    piece = ''
  }
  return { status: 200, pieces: [...pieces, `${piece}],${rest}}`] }
}
