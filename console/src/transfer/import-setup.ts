import type { Definitions, MatchKind } from '@kith/client'
import { client } from '../app/client.ts'
import { showRun } from './current-run.ts'
import {
  type CsvStart,
  columnsOfMapping,
  itemOfCells,
  itemOfLine,
  itemOfText,
  itemsOf,
  type Mapping,
  type ReadOptions,
} from './file-reader.ts'
import { openFile } from './file-source.ts'
import { ImportRun } from './import-run.ts'

/** What a person chooses before an import. */
export type ImportSetup = {
  file: File
  /** People, or the key of a stack. */
  owner: string
  options: ReadOptions
  mapping: Mapping
  match: readonly MatchKind[]
  isCreateOnly: boolean
}

/** Starts an import, and shows it on the page. `start` is null for a file of JSON lines. */
export function startImport(
  setup: ImportSetup,
  definitions: Definitions,
  start: CsvStart | null,
  isDryRun: boolean,
): void {
  const { file, owner, options, mapping, match, isCreateOnly } = setup
  const columns = start && columnsOfMapping(start.names, mapping, owner, definitions)
  const stack = definitions.stacks.find(({ key }) => key === owner)
  const run = new ImportRun({
    fileName: file.name,
    target: owner === 'people' ? owner : (stack?.name ?? owner),
    totalBytes: file.size,
    isDryRun,
    importAfterCheck: isDryRun ? () => startImport(setup, definitions, start, false) : null,
    isRepeatable: isDryRun || match.length > 1,
    head: start && { names: start.names, delimiter: start.delimiter },
    open() {
      const { pieces, readBytes } = openFile(file, options)
      return { items: itemsOf(pieces, owner, options, columns), readBytes }
    },
    reread({ line, content }) {
      if (typeof content !== 'string') return itemOfCells(line, content, columns!, options)
      if (columns === null) return itemOfLine(line, content, owner)
      return itemOfText(line, content, columns, { ...options, delimiter: start!.delimiter })
    },
    send(lines, signal) {
      const sendOptions = { signal, dryRun: isDryRun, createOnly: isCreateOnly }
      return client.entities(owner).import(lines, { ...sendOptions, ...(match.length > 1 && { match }) })
    },
  })
  showRun(run)
  void run.start()
}
