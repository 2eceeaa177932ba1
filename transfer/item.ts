import type { ReadAnswers } from './profile-answers.ts'

/** A line of NDJSON or a record of CSV in an import. */
export type ImportItem = {
  /** The first line of the item in the file, counted from 1. */
  line: number
  /** The JSON to send; null if the command itself refuses the item, or skips it because it is an exported placeholder. */
  body: string | null
  /** The content of the file: the bytes of a line or of a malformed record, or the Latin-1 cells of a record. */
  original: Uint8Array | string[]
  /** The reason, if the item is refused. */
  refusal?: Refusal
  /** Whether the line comes from a file of refused lines, with its reason. */
  isRefused?: boolean
  /** Whether the line recognizes no person by email or phone, because too many lines share its values. */
  recognizesNobody?: boolean
  /** The answers that a profile read from the record. */
  answers?: ReadAnswers
}

/**
 * The column of the reason in a file of refused records. It is the first column, because records may have any number of
 * cells.
 */
export const reasonColumn = 'refused_because'

/** A refused item. */
export type RefusedItem = Pick<ImportItem, 'line' | 'original'> & { refusal: Refusal }

/** The reason of a refusal. `code` is the error code of the service, or `unfit` for an unsent line. */
export type Refusal = { code: string; message: string; details: { path: string; message: string }[] }

/** Builds the refusal of a line that cannot be sent. */
export const buildUnfitRefusal = (message: string, details: Refusal['details'] = []): Refusal => ({
  code: 'unfit',
  message,
  details,
})

/** Formats a refusal as one line of text. */
export function reasonOf({ line, refusal }: Pick<RefusedItem, 'line' | 'refusal'>): string {
  const details = refusal.details.map(({ path, message }) => (path === '' ? message : `${path} ${message}`))
  const reason = details.length > 0 ? details.join('; ') : refusal.message
  return `line ${line}: ${refusal.code === 'unfit' ? '' : `${refusal.code}: `}${reason}`
}

/**
 * The `external_id` of a line; null for a line without one, which creates an entity each time it is sent. The
 * identifier of a line that is not JSON is empty. It does not matter, because the service refuses such a line.
 */
export function identifierOf({ body }: ImportItem): string | null {
  try {
    const { external_id = null } = (JSON.parse(body!) ?? {}) as { external_id?: unknown }
    return external_id === null ? null : String(external_id).trim()
  } catch {
    return ''
  }
}
