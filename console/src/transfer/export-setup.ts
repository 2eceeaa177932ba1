import { type Definitions, idOf, type Person, type StackRecord } from '@kith/client'
import { type CsvLook, csvShape, ndjsonShape } from '../../../transfer/export-shape.ts'
import type { Format } from '../../../transfer/file.ts'
import { client } from '../app/client.ts'
import { ExportRun, type ExportSource } from './export-run.ts'

/** What a person chooses before an export. */
export type ExportSetup = {
  /** People, or the key of a stack. */
  owner: string
  format: Format
  /** Only the people of this segment. */
  segment: string | null
  /** CSV that a spreadsheet reads, and not an import: names, separators and decimals are those of the reader. */
  isForSpreadsheets: boolean
  /** Only these columns of CSV, in this order. */
  columns?: readonly string[]
  /** The entities of a list, in its order, in place of all. */
  list?: ExportedList
}

/** A list that is read page by page. */
export type ExportedList = {
  count: () => Promise<number | null>
  /** Reads the next page, and the same again if that failed. Null after the last one. */
  readNext: (options: { size: number; signal: AbortSignal }) => Promise<object[] | null>
}

type Entity = Person | StackRecord
const pageSize = 500

/** A spreadsheet reads a file as UTF-8 if it begins with this mark. An import skips it. */
export const byteOrderMark = '\ufeff'

/** Makes the run of an export. `definitions` names the columns of CSV, which has the look of a spreadsheet if it is for one. */
export async function createExport(
  setup: ExportSetup,
  definitions: Definitions | undefined,
  spreadsheet: CsvLook,
): Promise<ExportRun> {
  const { owner, format, segment, isForSpreadsheets, columns, list } = setup
  const shape =
    format === 'csv' && definitions
      ? csvShape(owner, definitions, '|', { ...(isForSpreadsheets && spreadsheet), names: columns })
      : ndjsonShape
  const name = [owner, ...(segment === null ? [] : [segment]), new Date().toISOString().slice(0, 10)].join('-')
  return new ExportRun({
    fileName: `${name}.${format}`,
    mediaType: format === 'csv' ? 'text/csv' : 'application/x-ndjson',
    total: await (list?.count() ?? countOf(setup)).catch(() => null),
    header: format === 'csv' && isForSpreadsheets ? byteOrderMark + shape.header : shape.header,
    textOf: entities => shape.rowsOf(entities as Entity[]),
    open: list ? openList(list) : (after, signal) => open(setup, after, signal),
    identify: entity => idOf(entity as { id: string }),
  })
}

async function countOf({ owner, segment }: Pick<ExportSetup, 'owner' | 'segment'>): Promise<number> {
  const filter = segment === null ? {} : { $segment: segment }
  const { count } = await client.entities(owner).count(filter)
  return count
}

function open(
  { owner, segment }: Pick<ExportSetup, 'owner' | 'segment'>,
  after: string | undefined,
  signal: AbortSignal,
): ReturnType<ExportSource['open']> {
  if (segment === null) return client.entities(owner).export({ after, signal }) as never
  // The export of the API has everybody. The pages of a segment are read in the same order.
  return client.segments.people(segment, { after, size: pageSize, order: 'asc', signal }) as never
}

/** Pages arrive whole, so a list goes on after its last page. An order of its own has no identifier to go on after. */
function openList({ readNext }: ExportedList): ExportSource['open'] {
  return async function* (_, signal) {
    for (;;) {
      const items = await readNext({ size: pageSize, signal })
      if (items === null) return
      yield* items as Record<string, unknown>[]
    }
  }
}
