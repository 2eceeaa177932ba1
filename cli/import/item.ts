/** A line of NDJSON or a record of CSV, on its way. */
export type Item = {
  /** The line of the file where it begins, counted from 1. */
  line: number
  /** JSON that is sent; null where the line is refused before, or is left out: an exported placeholder. */
  body: string | null
  /** As it stood in the file: the bytes of a line; cells, a byte a character, of a record. */
  original: Buffer | string[]
  /** Why it is refused, if it is. */
  refusal?: Refusal
}

/** The column of a refused record's reason. It stands first, for a record may have any number of cells. */
export const reasonColumn = 'refused_because'

/** `word` is the service's, or ours where the line never got there. */
export type Refusal = { word: string; message: string; details: { path: string; message: string }[] }

/** A line that cannot be sent. */
export const unfitRefusal = (message: string, details: Refusal['details'] = []): Refusal => ({
  word: 'unfit',
  message,
  details,
})

/** A refusal as one line of text. */
export function reasonOf({ line, refusal }: Pick<Item, 'line'> & { refusal: Refusal }): string {
  const details = refusal.details.map(({ path, message }) => (path === '' ? message : `${path} ${message}`))
  const told = details.length > 0 ? details.join('; ') : refusal.message
  return `line ${line}: ${refusal.word === 'unfit' ? '' : `${refusal.word}: `}${told}`
}
