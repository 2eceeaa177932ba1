import { type FileHandle, open, unlink } from 'node:fs/promises'
import type { CsvHead } from '../../transfer/csv.ts'
import type { RefusedItem } from '../../transfer/item.ts'
import { refusedName, refusedText } from '../../transfer/refused.ts'

/**
 * The file of the refused lines and their reasons. It is in the folder of the input unless an option names it. kith
 * never overwrites an existing file.
 */
export type RejectsFile = {
  name: string
  count(): number
  write(items: RefusedItem[]): Promise<void>
  /** Closes the file, and removes it if no line was refused. */
  close(): Promise<void>
}

const maxNameNumber = 99

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
  return {
    name,
    count: () => count,
    async write(items) {
      if (items.length === 0) return
      const parts = refusedText(items, target.extension === 'csv' ? head : null, count === 0)
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
  for (let number = 1; number <= maxNameNumber; number++) {
    const name = named ?? refusedName(file === '-' ? 'stdin' : file, extension, number)
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
