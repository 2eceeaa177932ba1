import { type FileHandle, open, unlink } from 'node:fs/promises'
import { stringify } from 'csv-stringify/sync'
import type { CsvHead } from './csv.ts'
import { type Item, reasonColumn, reasonOf } from './item.ts'
import { withReason } from './ndjson.ts'

/** The file that the refused lines go to, and their reasons. */
export type RefusedFile = {
  name: string
  count(): number
  write(items: (Item & { refusal: NonNullable<Item['refusal']> })[]): Promise<void>
  /** Removes the file where nothing was refused. */
  close(): Promise<void>
}

const unlikeOthers = 99

/** `people.csv.gz` → `people.refused.csv`; `people.refused-2.csv` where there is one, so that none is ever lost. */
function* namesFor(file: string, extension: string): Generator<string> {
  const stem = file === '-' ? 'stdin' : file.replace(/\.gz$/i, '').replace(/\.\w+$/, '')
  yield `${stem}.refused.${extension}`
  for (let number = 2; number <= unlikeOthers; number++) yield `${stem}.refused-${number}.${extension}`
}

/**
 * Makes the file, before anything is sent: better no import than one whose refused lines are lost. `head` is
 * filled when the header of a CSV file is read.
 */
export async function openRefused(
  wanted: { file: string; extension: 'ndjson' | 'csv'; named: string | undefined },
  pathOf: (name: string) => string,
  head: CsvHead,
): Promise<RefusedFile> {
  const { name, handle } = await make(wanted, pathOf)
  let count = 0
  const textOf = (cells: string[]) => Buffer.from(stringify([cells], { delimiter: head.delimiter }), 'latin1')
  return {
    name,
    count: () => count,
    async write(items) {
      const parts = items.map(item =>
        Array.isArray(item.original)
          ? textOf([Buffer.from(reasonOf(item)).toString('latin1'), ...item.original])
          : Buffer.concat([withReason(item.original, reasonOf(item)), Buffer.from('\n')]),
      )
      if (count === 0 && wanted.extension === 'csv') parts.unshift(textOf([reasonColumn, ...head.cells]))
      count += items.length
      await handle.appendFile(Buffer.concat(parts))
    },
    async close() {
      await handle.close()
      if (count === 0) await unlink(pathOf(name))
    },
  }
}

async function make(
  { file, extension, named }: { file: string; extension: string; named: string | undefined },
  pathOf: (name: string) => string,
): Promise<{ name: string; handle: FileHandle }> {
  for (const name of named === undefined ? namesFor(file, extension) : [named]) {
    try {
      return { name, handle: await open(pathOf(name), 'wx') }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === 'EEXIST' && named === undefined) continue
      const why = code === 'EEXIST' ? 'it is there already' : message
      throw new Error(`Refused lines cannot be written to ${name}: ${why}. Name another file by --refused.`)
    }
  }
  throw new Error(`There are ${unlikeOthers} files of refused lines of ${file}: remove some, or use --refused.`)
}
