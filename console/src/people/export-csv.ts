import { fieldValue } from './columns.tsx'
import { csvRow } from './csv.ts'
import { type PeopleQuery, readPeople } from './people-query.ts'

/** Where an export writes. `close` returns what can be downloaded, if the file is not on the disk already. */
export type ExportTarget = {
  write(text: string): Promise<void>
  close(): Promise<Blob | undefined>
  abort(): Promise<void>
}

/** The text of the file in memory, in pieces that the browser may move to its disk. */
export function blobTarget(): ExportTarget {
  let pieces: Blob[] = []
  return {
    write: async text => {
      pieces.push(new Blob([text]))
    },
    close: async () => new Blob(pieces, { type: 'text/csv;charset=utf-8' }),
    abort: async () => {
      pieces = []
    },
  }
}

type FilePicker = (options: object) => Promise<{ createWritable(): Promise<WritableFile> }>
type WritableFile = { write(text: string): Promise<void>; close(): Promise<void>; abort(): Promise<void> }

/** Asks for a file on the disk and writes to it. Undefined if the browser cannot. Throws if the person cancels. */
export async function fileTarget(suggestedName: string): Promise<ExportTarget | undefined> {
  const picker = (globalThis as { showSaveFilePicker?: FilePicker }).showSaveFilePicker
  if (!picker) return undefined
  const file = await (await picker({ suggestedName })).createWritable()
  return { write: text => file.write(text), close: () => file.close().then(() => undefined), abort: () => file.abort() }
}

const exportPageSize = 500

/** Writes the people of a list as CSV, page by page. Throws the reason of the signal if it is aborted. */
export async function exportPeople(
  query: PeopleQuery,
  fields: readonly string[],
  target: ExportTarget,
  { signal, onProgress }: { signal: AbortSignal; onProgress(exported: number): void },
): Promise<void> {
  let exported = 0
  let cursor: string | undefined
  try {
    await target.write(csvRow(fields))
    do {
      const page = await readPeople({ ...query, fields }, { cursor, size: exportPageSize, signal })
      signal.throwIfAborted()
      await target.write(page.items.map(row => csvRow(fields.map(name => fieldValue(row, name)))).join(''))
      exported += page.items.length
      onProgress(exported)
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
  } catch (error) {
    await target.abort()
    throw error
  }
}
