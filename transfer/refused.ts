import { stringify } from 'csv-stringify/sync'
import { bytesOf, type CsvHead, cellOf } from './csv.ts'
import { type ImportItem, type RefusedItem, reasonColumn, reasonOf } from './item.ts'
import { withReason } from './ndjson.ts'

/**
 * A file of refused lines: each as it was, after its reason. An import reads the file when it was corrected. `head` is null for a file
 * of JSON lines. `isFirst` puts the header of CSV before them.
 */
export function refusedText(items: RefusedItem[], head: CsvHead | null, isFirst: boolean): Uint8Array<ArrayBuffer>[] {
  const row = (cells: string[]) => bytesOf(stringify([cells], { delimiter: head!.delimiter }))
  return [
    ...(isFirst && head ? [row([reasonColumn, ...head.cells])] : []),
    ...items.flatMap(item => {
      const reason = reasonOf(item)
      if (Array.isArray(item.original)) return [row([cellOf(reason), ...item.original])]
      return [withReason(item.original, reason), lineEnd]
    }),
  ]
}

const lineEnd = new Uint8Array([10])

/** The items that were refused. */
export const refusedOf = (items: ImportItem[]): RefusedItem[] =>
  items.filter((item): item is ImportItem & RefusedItem => item.refusal !== undefined)

/** `people.csv.gz` → `people.refused.csv`, and `people.refused-2.csv` with the number 2. */
export function refusedName(file: string, extension: string, number = 1): string {
  const stem = file.replace(/\.gz$/i, '').replace(/\.\w+$/, '')
  return `${stem}.refused${number === 1 ? '' : `-${number}`}.${extension}`
}
