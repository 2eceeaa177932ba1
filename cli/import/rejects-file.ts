import { type FileHandle, open, unlink } from 'node:fs/promises'
import { stringify } from 'csv-stringify/sync'
import type { CsvHead } from './csv.ts'
import { type ImportItem, reasonColumn, reasonOf } from './item.ts'
import { withReason } from './ndjson.ts'

/** The file of the refused lines and their reasons. */
export type RejectsFile = {
  name: string
  count(): number
  write(items: (ImportItem & { refusal: NonNullable<ImportItem['refusal']> })[]): Promise<void>
  /** Closes the file, and removes it if nothing was refused. */
  close(): Promise<void>
}

const maxNameNumber = 99

/** `people.csv.gz` → `people.refused.csv`, then `people.refused-2.csv` and so on. An existing file is never overwritten. */
function* namesFor(file: string, extension: string): Generator<string> {
  const stem = file === '-' ? 'stdin' : file.replace(/\.gz$/i, '').replace(/\.\w+$/, '')
  yield `${stem}.refused.${extension}`
  for (let number = 2; number <= maxNameNumber; number++) yield `${stem}.refused-${number}.${extension}`
}

/**
 * Creates the file before anything is sent, so that no refused line is lost. `head` is filled when the header of a CSV file
 * has been read. Throws if the file exists or cannot be created.
 */
export async function openRejectsFile(
  target: { file: string; extension: 'ndjson' | 'csv'; named: string | undefined },
  pathOf: (name: string) => string,
  head: CsvHead,
): Promise<RejectsFile> {
  const { name, handle } = await createFile(target, pathOf)
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
      if (count === 0 && target.extension === 'csv') parts.unshift(textOf([reasonColumn, ...head.cells]))
      count += items.length
      await handle.appendFile(Buffer.concat(parts))
    },
    async close() {
      await handle.close()
      if (count === 0) await unlink(pathOf(name))
    },
  }
}

async function createFile(
  { file, extension, named }: { file: string; extension: string; named: string | undefined },
  pathOf: (name: string) => string,
): Promise<{ name: string; handle: FileHandle }> {
  for (const name of named === undefined ? namesFor(file, extension) : [named]) {
    try {
      return { name, handle: await open(pathOf(name), 'wx') }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === 'EEXIST' && named === undefined) continue
      const reason = code === 'EEXIST' ? 'it exists already' : message
      throw new Error(`Refused lines cannot be written to ${name}: ${reason}. Name another file with --refused.`)
    }
  }
  throw new Error(`There are ${maxNameNumber} files of refused lines of ${file}. Remove some or use --refused.`)
}
