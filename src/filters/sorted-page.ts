import type { Database } from '../db/db.ts'
import type { ReadEntity } from '../entities/entity-row.ts'
import { prepareSortIndex, readySortIndex } from '../entities/indexes/sort-index.ts'
import { compareByCodePoint, noValueTerm, sortTermOf } from '../entities/indexes/sort-terms.ts'
import { type Position, sizeToRead } from '../entities/read/pagination.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { readMeasuredPage } from './measured-page.ts'
import { DefinitionsChanged, type FilterFindings, type FilterOptions, type Reading, underDefinitions } from './page.ts'
import type { SortBody } from './schema.ts'
import {
  type CandidateRow,
  maxSortedCandidates,
  type Query,
  roundGrowth,
  type SortedEntity,
  type SortedStatements,
  type SortKey,
  sortedStatements,
  type WalkedRow,
} from './select.ts'
import { isMeasured, parseSort, type Sort } from './sort.ts'

export type SortedPage = {
  reads: SortedEntity[]
  has_more: boolean
  definitions: Definitions
} & FilterFindings

export type SortedRequest = {
  sort: SortBody
  /** Without a filter, all entities of the stack. */
  filter?: unknown
  /** `after_id` and `after_term` are the place of the last entity of the page before. */
  position: Position
}

/**
 * Reads a page of the entities of a stack that satisfy a filter, in the order of a field. The first request of a field builds its
 * index. Throws the Faults of the filter, a Fault of 400 if the field cannot sort, and one of 503 while its index is being filled.
 */
export async function readSortedPage(
  db: Database,
  organization_id: number,
  stack_id: number,
  { sort: body, filter = {}, position: given }: SortedRequest,
  options: FilterOptions = {},
): Promise<SortedPage> {
  return underDefinitions(db, organization_id, { stack_id, filter, ...options }, async reading => {
    const { definitions } = reading
    if (isMeasured(body)) {
      const page = await readMeasuredPage(
        reading,
        stack_id,
        body,
        { ...given, direction: body.direction ?? 'asc' },
        options,
      )
      return { ...page, definitions, counted: reading.counted }
    }
    const { parsed, notes } = await reading.parseFilter()
    const { condition } = parsed
    const sort = await reading.check(() => parseSort(body, definitions, stack_id))
    const { name: field, type, direction } = sort
    const index = readySortIndex(definitions, stack_id, field)
    if (!index) {
      await prepareSortIndex(db, definitions, { stack_id, field, type }, options.signal)
      throw new DefinitionsChanged('the sort index was built during the request')
    }
    const position = { ...given, direction }
    const statements = sortedStatements({ condition, definitions, stack_id, sort, index, position })
    const found =
      (await readFewCandidates(reading, statements, sort, position)) ?? (await walk(reading, statements, position))
    return {
      reads: found.slice(0, position.size),
      has_more: found.length > position.size,
      ...notes,
      definitions,
      counted: reading.counted,
    }
  })
}

const keyAfter = ({ after_id, after_term }: Position): SortKey | undefined =>
  after_id === undefined || after_term === undefined ? undefined : { id: after_id, term: after_term }

/** After so many rounds, some 7,000 entities of a page of 50, it is known how many match. */
const roundsBeforeAll = 3

/**
 * Reads the sort index in order, in rounds, and checks each entity. If the next round would not fill the page, a condition on linked entities
 * is checked of the whole stack at once. Returns up to one entity more than the page has.
 */
async function walk(reading: Reading, statements: SortedStatements, position: Position) {
  const found: SortedEntity[] = []
  let after = keyAfter(position)
  for (let round = 0; ; round += 1) {
    const limit = sizeToRead(position) - found.length
    if (statements.all && round >= roundsBeforeAll && found.length * roundGrowth < sizeToRead(position))
      return [...found, ...(await reading.run<SortedEntity>(statements.all(after, limit)))]
    const rows = await reading.run<WalkedRow>(statements.walk(after, limit, round))
    for (const { id, term, row, schema_version } of rows) if (id !== null) found.push({ id, term, row, schema_version })
    const { last_id, last_term } = rows[0]!
    if (found.length >= sizeToRead(position) || last_id === null) return found
    after = { id: last_id, term: last_term! }
  }
}

/**
 * If an index finds few candidates, reads what the order of all matches depends on, sorts them here, and reads the rows of the page.
 * Returns undefined if they are not few.
 */
async function readFewCandidates(
  reading: Reading,
  { candidates, rows }: SortedStatements,
  sort: Sort,
  position: Position,
): Promise<SortedEntity[] | undefined> {
  const matches = await readCandidates(reading, candidates)
  if (!matches) return undefined
  const compare = position.direction === 'asc' ? compareAscending : compareDescending
  const after = keyAfter(position)
  const terms = new Map<string, string>()
  const keys: SortKey[] = []
  for (const { id, value } of matches) {
    if (id === null) continue
    const key = { id, term: sort.field.kind === 'time' ? String(value) : sortTermOf(sort.type, value) }
    if (after && compare(key, after) <= 0) continue
    keys.push(key)
    terms.set(id, key.term)
  }
  keys.sort(compare)
  const found: SortedEntity[] = []
  // An entity that a concurrent write removes from the matches is left out, and the next ones are read for it.
  for (let next = 0; next < keys.length && found.length < sizeToRead(position); ) {
    const ids = keys.slice(next, next + sizeToRead(position) - found.length).map(({ id }) => id)
    next += ids.length
    for (const read of await reading.run<ReadEntity>(rows(ids))) found.push({ ...read, term: terms.get(read.id)! })
  }
  return found
}

/** The matches among the candidates of the first index that gives few. Undefined if none does. */
async function readCandidates(reading: Reading, candidates: readonly Query[]): Promise<CandidateRow[] | undefined> {
  for (const query of candidates) {
    const matches = await reading.run<CandidateRow>(query)
    if (matches[0]!.candidates <= maxSortedCandidates) return matches
  }
}

const compareAscending = (one: SortKey, other: SortKey): number =>
  compareByCodePoint(one.term, other.term) || (one.id < other.id ? -1 : Number(one.id > other.id))

/** Values backwards, then entities without a value, each with the later identifier first. */
const compareDescending = (one: SortKey, other: SortKey): number =>
  Number(one.term >= noValueTerm) - Number(other.term >= noValueTerm) || compareAscending(other, one)
