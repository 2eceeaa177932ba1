import { stringify } from 'csv-stringify/sync'
import { bytesOf, type CsvHead, cellOf } from './csv.ts'
import { type ImportItem, type RefusedItem, reasonColumn, reasonOf } from './item.ts'
import { withReason } from './ndjson.ts'

/**
 * A file of refused lines: each original line after its reason. An import with the same options reads the corrected
 * file. The file is in UTF-8, even if the imported one was not: the byte order mark of CSV and the reason in JSON
 * override another encoding. `head` is null for JSON lines. With `isFirst`, the mark and the header of CSV come first.
 */
export function refusedText(items: RefusedItem[], head: CsvHead | null, isFirst: boolean): Uint8Array<ArrayBuffer>[] {
  const row = (cells: string[]) => bytesOf(stringify([cells], { delimiter: head!.delimiter }))
  return [
    ...(isFirst && head ? [mark, row([reasonColumn, ...head.cells])] : []),
    ...items.flatMap(item => {
      const reason = reasonOf(item)
      if (Array.isArray(item.original)) return [row([cellOf(reason), ...item.original])]
      if (!head) return [withReason(item.original, reason), lineEnd]
      // A row of the reason and an empty cell, without its line end, ends in the separator.
      return [row([cellOf(reason), '']).subarray(0, -1), item.original as Uint8Array<ArrayBuffer>, lineEnd]
    }),
  ]
}

const mark = new Uint8Array([0xef, 0xbb, 0xbf])
const lineEnd = new Uint8Array([10])

/** The refused items. */
export const refusedOf = (items: ImportItem[]): RefusedItem[] =>
  items.filter((item): item is ImportItem & RefusedItem => item.refusal !== undefined)

/** `people.csv.gz` → `people.refused.csv`, and `people.refused-2.csv` with the number 2. */
export function refusedName(file: string, extension: string, number = 1): string {
  const stem = file.replace(/\.gz$/i, '').replace(/\.\w+$/, '')
  return `${stem}.refused${number === 1 ? '' : `-${number}`}.${extension}`
}
