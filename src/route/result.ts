import type { Release } from '../process/fair-pool.ts'

/**
 * The result of a handler: the payload of the success envelope, as data or as JSON text, whole or in chunks. `release`
 * returns the memory taken for it, and is called after the response was sent. `definitionsVersion` is the version of
 * the definitions at the time of a read.
 */
export type EnvelopeResult = {
  status: number
  headers?: Record<string, string>
  release?: Release
  definitionsVersion?: number
} & ({ data: unknown } | { json: string } | { pieces: readonly string[] })

/**
 * The payload as JSON in parts, with back-pressure. An error before the first part becomes an error response. A later
 * error closes the connection, so that a client never mistakes a part for the whole. The generator is always iterated.
 */
export type ChunkedResult = { status: number; headers?: Record<string, string>; parts: AsyncGenerator<Buffer> }

/**
 * The result of a streaming row: JSON lines, or another media type. An error closes the connection, so that a client
 * never mistakes a part for the whole.
 */
export type StreamResult = {
  status: number
  headers?: Record<string, string>
  stream: AsyncIterable<string | Buffer>
  contentType?: string
}

/** A response of the row's `answerType`, sent unchanged. */
export type PlainResult = {
  status: number
  headers?: Record<string, string>
  body: string | Buffer
  contentType: string
}

export type HandlerResult = EnvelopeResult | ChunkedResult | StreamResult | PlainResult

/** A page of a list. The rows include one more than the limit if another page follows. */
export const listPage = <Row, Item = Row>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item = row => row as never,
): { items: Item[]; has_more: boolean } => ({ items: rows.slice(0, limit).map(toItem), has_more: rows.length > limit })
