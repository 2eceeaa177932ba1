import { KithConnectionError, KithError } from './errors.ts'
import type { WriteOptions } from './options.ts'
import type { Detail, ErrorCode } from './wire.ts'

/**
 * The options of an import. `dryRun` checks every line and stores nothing. `createOnly` refuses a line that would
 * change an existing entity. `match`, for people only, also recognizes them by email or phone; the lines of one person
 * take effect in their order. `consents: 'now'`, for people only, gives consent answers without `collected_at` the
 * current time instead of an unknown one. `phoneCountry`, for people only, is the country of numbers without a prefix,
 * such as `IT`. `lists: 'add'` adds the elements of lists to the stored ones instead of replacing them. The import ends
 * with a KithImportError after `maxRefused` refused lines in a row, 1,000 by default.
 */
export type ImportOptions = Pick<WriteOptions, 'signal' | 'requestId' | 'references' | 'erased'> & {
  dryRun?: boolean
  createOnly?: boolean
  maxRefused?: number
  match?: readonly ('external_id' | 'email' | 'mobile')[]
  consents?: 'now'
  phoneCountry?: string
  lists?: 'replace' | 'add'
}

/** The counts of lines. Every received line is created, updated, unchanged or failed. */
export type ImportCounts = { received: number; created: number; updated: number; unchanged: number; failed: number }

/**
 * The final counts. The change log up to the number `sequence` includes all accepted lines. `sequence` is absent from a
 * dry run, and if every line was refused. `warnings` counts the stored lines whose `mobile_number` is no phone number.
 */
export type ImportResult = ImportCounts & { sequence?: number; warnings?: number }

/** A refused line, counted from 1. The other lines are processed. */
export type ImportRefusal = { line: number; error: ErrorCode; message: string; details: Detail[]; reason?: 'erased' }

/**
 * Refused lines after the first 10,000 refusals or 1 MiB of refusals. Their reasons are not reported. Each pair has the
 * first and the last line of a range. An import of only these lines reports their reasons.
 */
export type ImportRefusedLines = { refused_lines: [first: number, last: number][] }

/**
 * A line of an import's response: a refusal, the counts so far (once a second), or the final counts as the last line.
 */
export type ImportAnswer = ImportRefusal | ImportRefusedLines | { progress: ImportCounts } | ImportResult

/**
 * The service could not continue an import. The lines that `progress` counts are stored. Sending all lines again is
 * safe.
 */
export class KithImportError extends KithError {
  override readonly name = 'KithImportError'
  readonly progress: ImportCounts

  constructor({ error, message, details, request_id, outcome, progress }: Fault) {
    const refusal = { status: 200, details: details ?? [], request_id: request_id ?? null, errorstack: null }
    super({ ...refusal, code: error, message, retryAfterSeconds: null, outcome: outcome ?? null })
    this.progress = progress
  }
}

type Fault = {
  error: ErrorCode
  message: string
  details?: Detail[]
  request_id?: string
  outcome?: 'unknown'
  progress: ImportCounts
}

/**
 * The lines of a response. `onSequence` receives the `sequence` of the last line. Throws if the stream reports an error
 * or ends before its last line.
 */
export async function* importAnswers(
  values: AsyncIterable<unknown>,
  onSequence: (sequence: number) => void,
): AsyncGenerator<ImportAnswer, void, undefined> {
  let last: ImportAnswer | undefined
  for await (const value of values) {
    last = value as ImportAnswer
    if ('error' in last && !('line' in last)) throw new KithImportError(last as Fault)
    if ('sequence' in last && last.sequence !== undefined) onSequence(last.sequence)
    yield last
  }
  if (last === undefined || !('received' in last))
    throw new KithConnectionError('The response ended before its last line.', {})
}
