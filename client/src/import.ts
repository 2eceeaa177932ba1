import { KithConnectionError, KithError } from './errors.ts'
import type { WriteOptions } from './options.ts'
import type { Detail, ErrorWord } from './wire.ts'

/**
 * What an import may be told. `dry_run` checks every line and stores nothing; `create_only` refuses a line that would change
 * an entity that exists.
 */
export type ImportOptions = Pick<WriteOptions, 'signal' | 'requestId' | 'references'> & {
  dry_run?: boolean
  create_only?: boolean
}

/** What has become of the lines so far; each that was received is one of the four others. */
export type ImportCounts = { received: number; created: number; updated: number; unchanged: number; failed: number }

/** A line that was refused, counted from 1; all others are taken all the same. */
export type ImportRefusal = { line: number; error: ErrorWord; message: string; details: Detail[] }

/**
 * Lines that were refused behind the first 10,000 or 1 MiB of refusals, whose reasons are not told: the first and the last line of each
 * run of them. Sent again by themselves they are told.
 */
export type ImportRefusedLines = { refused_lines: [first: number, last: number][] }

/** One line of an import's answer: a refusal, what there is so far (once a second), or, as the last, what came of all. */
export type ImportAnswer = ImportRefusal | ImportRefusedLines | { progress: ImportCounts } | ImportCounts

/** The service could not go on. The lines that `progress` counts are done; sending all again does no harm. */
export class KithImportError extends KithError {
  override readonly name = 'KithImportError'
  readonly progress: ImportCounts

  constructor({ error, message, details, request_id, outcome, progress }: Fault) {
    const refusal = { status: 200, details: details ?? [], request_id: request_id ?? null, errorstack: null }
    super({ ...refusal, word: error, message, retryAfterSeconds: null, outcome: outcome ?? null })
    this.progress = progress
  }
}

type Fault = {
  error: ErrorWord
  message: string
  details?: Detail[]
  request_id?: string
  outcome?: 'unknown'
  progress: ImportCounts
}

/** The lines of an answer. Throws where the stream tells of a fault, or ends without its last line. */
export async function* importAnswers(values: AsyncIterable<unknown>): AsyncGenerator<ImportAnswer, void, undefined> {
  let last: ImportAnswer | undefined
  for await (const value of values) {
    last = value as ImportAnswer
    if ('error' in last && !('line' in last)) throw new KithImportError(last as Fault)
    yield last
  }
  if (last === undefined || !('received' in last))
    throw new KithConnectionError('The answer ended before its last line.', {})
}
