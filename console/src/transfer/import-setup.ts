import type { Definitions, MatchKind } from '@kith/client'
import { cellOf } from '../../../transfer/csv.ts'
import type { ImportItem } from '../../../transfer/item.ts'
import { SharedAddresses } from '../../../transfer/shared-addresses.ts'
import { client, newKey } from '../app/client.ts'
import { ownerName } from '../entity/address.ts'
import { type ConsentOrigin, missingEvidence, originCells } from './consent-origin.ts'
import { showRun } from './current-run.ts'
import {
  type CsvStart,
  columnsOfMapping,
  type FoundOptions,
  findOptions,
  itemOfCells,
  itemOfLine,
  itemOfText,
  itemsOf,
  type Mapping,
  type ReadOptions,
} from './file-reader.ts'
import { openFile } from './file-source.ts'
import { ImportRun } from './import-run.ts'
import type { RefusedLine } from './refused-lines.ts'

/** What a person chooses before an import. */
export type ImportSetup = {
  file: File
  /** People, or the key of a stack. */
  owner: string
  options: ReadOptions
  mapping: Mapping
  match: readonly MatchKind[]
  isCreateOnly: boolean
  /** People are recognized also by an address that more than ten lines share. */
  takesShared: boolean
  /** Whether consent answers without a time are given now. */
  areAnswersOfNow: boolean
  /** Whether lists add their elements to those that are stored. */
  addsToLists: boolean
  origin: ConsentOrigin
  /** The country of numbers without a prefix. Null: that of the settings. */
  phoneCountry: string | null
}

/** Other cells for those that many lines were refused for, by the index of their column. */
type ReplacedCells = Map<number, Map<string, string>>

/**
 * Starts an import, and shows it on the page. `start` is null for a file of JSON lines. `replacements` are those that a person gave after a
 * check of the file.
 */
export function startImport(
  setup: ImportSetup,
  definitions: Definitions,
  start: CsvStart | null,
  isDryRun: boolean,
  replacements: ReplacedCells = new Map(),
): void {
  const { file, owner, mapping, match, isCreateOnly, takesShared, areAnswersOfNow, addsToLists, origin, phoneCountry } =
    setup
  const constants = originCells(origin, missingEvidence(mapping, owner, definitions))
  const columns = start && { ...columnsOfMapping(start.names, mapping, owner, definitions, constants), replacements }
  const options = columns ? findOptions(setup.options, start, columns).options : setup.options
  // The next file with this header is read in the same way. An import does not depend on it.
  if (start && !isDryRun)
    client.imports
      .saveMapping({ owner, header: start.names, fields: mapping.map(field => field || null) })
      .catch(() => {})
  const shared = new SharedAddresses(match)
  const isMatched = match.length > 1
  // One id for all requests, so that the import is one.
  const requestId = newKey()
  const read = () => {
    const { pieces, readBytes } = openFile(file, options)
    return { items: itemsOf(pieces, owner, options, columns), readBytes }
  }
  async function* spared(items: AsyncIterable<ImportItem[]>) {
    // A file is read whole before it is sent, to find the addresses that many lines share.
    if (isMatched && !takesShared) await shared.count(read().items, () => !run.isActive)
    yield* shared.spareAll(items)
  }
  const reread = ({ line, content }: RefusedLine) => {
    if (typeof content !== 'string') return itemOfCells(line, content, columns!, options as FoundOptions)
    if (columns === null) return itemOfLine(line, content, owner)
    return itemOfText(line, content, columns, { ...(options as FoundOptions), delimiter: start!.delimiter })
  }
  const run = new ImportRun({
    fileName: file.name,
    target: ownerName(owner, definitions, owner),
    totalBytes: file.size,
    isDryRun,
    importAfterCheck: isDryRun ? () => startImport(setup, definitions, start, false, replacements) : null,
    isRepeatable: item => isDryRun || (isMatched && !item.recognizesNobody),
    head: start && { names: start.names, delimiter: start.delimiter },
    fields: mapping,
    replaceLater(column, cell, other) {
      const others = replacements.get(column) ?? new Map<string, string>()
      replacements.set(column, others.set(cellOf(cell), cellOf(other)))
    },
    match,
    shared,
    open() {
      const { items, readBytes } = read()
      return { items: spared(items), readBytes }
    },
    reread: async line => shared.spare(await reread(line)),
    send(lines, signal) {
      const sendOptions = { signal, dryRun: isDryRun, createOnly: isCreateOnly }
      return client.entities(owner).import(lines, {
        ...sendOptions,
        requestId,
        ...(isMatched && { match }),
        ...(areAnswersOfNow && owner === 'people' && { consents: 'now' }),
        ...(addsToLists && { lists: 'add' }),
        ...(phoneCountry !== null && { phoneCountry }),
      })
    },
  })
  showRun(run)
  void run.start()
}
