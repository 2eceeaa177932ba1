import type { Definitions, MatchKind } from '@kith/client'
import { client } from '../app/client.ts'
import { newKey } from '../app/send-once.ts'
import { showRun } from './current-run.ts'
import {
  type CsvStart,
  columnsOfMapping,
  itemOfCells,
  itemOfLine,
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
  /** Whether consent answers without a time are given now. */
  areAnswersOfNow: boolean
  /** Whether lists add their elements to those that are stored. */
  addsToLists: boolean
}

/** Starts an import, and shows it on the page. `start` is null for a file of JSON lines. */
export function startImport(
  setup: ImportSetup,
  definitions: Definitions,
  start: CsvStart | null,
  isDryRun: boolean,
): void {
  const { file, owner, options, mapping, match, isCreateOnly, areAnswersOfNow, addsToLists } = setup
  const columns = start && columnsOfMapping(start.names, mapping, owner, definitions)
  const stack = definitions.stacks.find(({ key }) => key === owner)
  // One id for all requests, so that the import is one.
  const requestId = newKey()
  const run = new ImportRun({
    fileName: file.name,
    target: owner === 'people' ? owner : (stack?.name ?? owner),
    totalBytes: file.size,
    isDryRun,
    importAfterCheck: isDryRun ? () => startImport(setup, definitions, start, false) : null,
    isRepeatable: isDryRun || match.length > 1,
    head: start && { names: start.names, delimiter: start.delimiter },
    open() {
      const { pieces, readBytes } = openFile(file, options.encoding)
      return { items: itemsOf(pieces, owner, options, columns), readBytes }
    },
    reread: ({ line, content }) =>
      typeof content === 'string' ? itemOfLine(line, content, owner) : itemOfCells(line, content, columns!, options),
    send(lines, signal) {
      const sendOptions = { signal, dryRun: isDryRun, createOnly: isCreateOnly }
      return client.entities(owner).import(lines, {
        ...sendOptions,
        requestId,
        ...(match.length > 1 && { match }),
        ...(areAnswersOfNow && owner === 'people' && { consents: 'now' }),
        ...(addsToLists && { lists: 'add' }),
      })
    },
  })
  showRun(run)
  void run.start()
}
