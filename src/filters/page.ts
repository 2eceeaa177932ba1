import { awaitPipelined, type Database, statement, type Transaction } from '../db/db.ts'
import { retryConflicts } from '../db/retry-policy.ts'
import type { ReadEntity } from '../entities/entity-row.ts'
import { type Count, type Page, type Position, pageOf, sizeToRead, startOf } from '../entities/read/pagination.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../organizations/definitions.ts'
import { readSchemaVersionSql } from '../organizations/definitions-sql.ts'
import type { Signal } from '../signal.ts'
import { withIndexAdvice } from './index-advice.ts'
import { type ParsedFilter, parseFilter, type UndeclaredKey } from './parse.ts'
import {
  countStatement,
  type MatchingStatements,
  matchingStatements,
  plannerDefaultsSql,
  type Query,
} from './select.ts'
import { defaultSearchMs, findUnusedKeys } from './undeclared-keys.ts'

// A generic plan is based neither on the page size nor on how many rows a value finds. The text differs from filter to
// filter, so PostgreSQL plans each statement anyway, except one with a name.
export const planWithValuesSql = statement('', 'set local plan_cache_mode = force_custom_plan')

export type FilterOptions = {
  signal?: Signal | undefined
  /** The source of the filter. All operands of a query string are texts. */
  boundFrom?: 'body' | 'query' | undefined
  /** The time that relative times count from. */
  nowMs?: number | undefined
  /** Whether all matches are counted, as of the moment of the first query. */
  isCounted?: boolean | undefined
  /** Called with the parsed filter before anything is read. It throws if the caller may not run the filter. */
  authorize?: (parsed: ParsedFilter) => void
  /** Called before the page is read, with the undeclared keys that no entity carries, if there are any. It may throw. */
  rejectUnusedKeys?: ((keys: UndeclaredKey[]) => void) | undefined
}

/** The filter's undeclared keys that no entity carries, and the time of which it asked, if it has relative times. */
export type FilterNotes = { unusedKeys: UndeclaredKey[]; evaluated_at: string | undefined }

/** The notes of a filter, and the count if it was asked for. */
export type FilterFindings = FilterNotes & { counted: Count | undefined }

/** A page, and the definitions that the filter was parsed with. */
export type FilteredPage = Page & FilterFindings & { definitions: Definitions }

/**
 * Reads a page of the entities of a stack that satisfy a filter, in order of their ids, under the definitions current at that
 * moment. Throws the Faults of `parseFilter`, and a conflict if the definitions change during every attempt.
 */
export function readFilteredPage(
  db: Database,
  organization_id: number,
  stack_id: number,
  filter: unknown,
  position: Position,
  options: FilterOptions = {},
): Promise<FilteredPage> {
  return underDefinitions(db, organization_id, { stack_id, filter, ...options }, async reading => {
    const { definitions } = reading
    const { parsed, notes } = await reading.parseFilter()
    const page = await readMatching(
      reading,
      matchingStatements(parsed.condition, definitions, stack_id, position),
      position,
    )
    return { ...page, ...notes, definitions, counted: reading.counted }
  })
}

/** The definitions have changed since the request was parsed. It is parsed and run again. */
export class DefinitionsChanged extends Error {}

/** A filter on the entities of a stack. */
type FilterRequest = FilterOptions & { stack_id: number; filter: unknown }

/**
 * Reads under the cached definitions, and again under newer ones if they change meanwhile. If the time does not suffice, the 504 advises
 * on indexes.
 */
export async function underDefinitions<T>(
  db: Database,
  organization_id: number,
  request: FilterRequest,
  read: (reading: Reading) => Promise<T>,
): Promise<T> {
  const { signal, stack_id: stackId, filter: value, boundFrom = 'body' } = request
  let definitions = await cachedDefinitions(db, organization_id, signal)
  const attempt = async (previousError?: unknown) => {
    if (previousError) definitions = await reloadDefinitions(db, organization_id, signal)
    try {
      return await read(new Reading(db, definitions, request))
    } catch (error) {
      throw withIndexAdvice(error, { value, stackId, boundFrom }, definitions)
    }
  }
  return retryConflicts(attempt, error => error instanceof DefinitionsChanged, signal)
}

/** One attempt of {@link underDefinitions}. */
export class Reading {
  readonly definitions: Definitions
  readonly #db: Database
  readonly #request: FilterRequest
  #counting: Query | undefined
  #counted: Count | undefined

  constructor(db: Database, definitions: Definitions, request: FilterRequest) {
    this.#db = db
    this.definitions = definitions
    this.#request = request
  }

  /** Parses the filter of the request, as {@link parse} does. If its matches are counted, the first query that runs counts them. */
  async parseFilter(): Promise<{ parsed: ParsedFilter; notes: FilterNotes }> {
    const { filter, stack_id, boundFrom, nowMs, isCounted } = this.#request
    const checked = await this.parse(() => parseFilter(filter, this.definitions, stack_id, { boundFrom, nowMs }))
    if (isCounted) this.#counting = countStatement(checked.parsed.condition, this.definitions, stack_id)
    return checked
  }

  /** Parses a request whose filter the caller may run, and finds the undeclared keys that no entity carries. Throws the Fault of either. */
  parse<Parsed extends ParsedFilter>(parse: () => Parsed): Promise<{ parsed: Parsed; notes: FilterNotes }> {
    const { signal, authorize, rejectUnusedKeys } = this.#request
    return this.check(async () => {
      const parsed = parse()
      authorize?.(parsed)
      const searchMs = rejectUnusedKeys ? undefined : defaultSearchMs
      const unusedKeys = await findUnusedKeys(this.#db, this.definitions, parsed.undeclared, { signal, searchMs })
      if (unusedKeys.length > 0) rejectUnusedKeys?.(unusedKeys)
      return { parsed, notes: { unusedKeys, evaluated_at: parsed.evaluated_at } }
    })
  }

  /** Returns the result of `work`. A fault of it may come from outdated definitions. Throws {@link DefinitionsChanged} if they are. */
  async check<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (fault) {
      await this.run()
      throw fault
    }
  }

  /** The count of the matches as of the first query, once it has run. */
  get counted(): Count | undefined {
    return this.#counted
  }

  /** Runs a query, if there is one. Throws {@link DefinitionsChanged} if the definitions are no longer current. */
  async run<R extends object>(query?: Query): Promise<R[]> {
    const counting = query && this.#counted === undefined ? this.#counting : undefined
    const queries = [counting, query].filter(each => each !== undefined)
    const results = await runQueries(this.#db, this.definitions, queries, this.#request.signal)
    if (counting) this.#counted = results[0]![0] as Count
    return (results.at(-1) ?? []) as R[]
  }
}

async function readMatching(reading: Reading, given: MatchingStatements, position: Position): Promise<Page> {
  const found: ReadEntity[] = []
  let statements = await unlessMany(reading, given)
  let start: string | undefined = startOf(position)
  for (let round = 0; start !== undefined; round += 1) {
    const limit = sizeToRead(position) - found.length
    for (const read of await reading.run<ReadEntity>(statements.rows(start, limit, round))) found.push(read)
    const boundary: Query | undefined =
      found.length < sizeToRead(position) ? statements.boundary(start, round) : undefined
    if (!boundary) break
    const [last]: { id: string }[] = await reading.run(boundary)
    start = last?.id
    if (round === 0 && start && statements.choice) {
      const [counted]: { counts: number[] }[] = await reading.run(statements.choice.countCandidates)
      statements = statements.choice.choose(counted!.counts)
    }
  }
  return pageOf(found, position)
}

async function unlessMany(reading: Reading, { unlessFew, ...statements }: MatchingStatements) {
  if (!unlessFew) return statements
  const [counted]: { count: number }[] = await reading.run(unlessFew.countCandidates)
  return counted!.count > unlessFew.max ? unlessFew.others : statements
}

/**
 * Runs queries, if there are any, and reads the version of the definitions as of the same moment. The indexes that the definitions name
 * exist as long as the version is the same. Throws {@link DefinitionsChanged} if it is not.
 */
function runQueries(
  db: Database,
  { organization_id, version }: Definitions,
  queries: readonly Query[],
  signal: Signal | undefined,
): Promise<object[][]> {
  return db.transaction(
    async tx => {
      const planning = queries.every(({ name }) => name) ? [] : [tx.query(planWithValuesSql, [])]
      const sent = queries.map((query, index) => sendQuery(tx, query, index === queries.length - 1))
      const comparing = tx.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id])
      await awaitPipelined([
        ...planning,
        ...sent.flatMap(({ rows, others }) => [rows, ...others]),
        comparing,
        tx.commit(),
      ])
      const [head] = await comparing
      if (head?.schema_version !== version) throw new DefinitionsChanged('the definitions changed during the filter')
      return Promise.all(sent.map(({ rows }) => rows))
    },
    { signal, readsFirst: true, isSnapshot: true },
  )
}

type Sent = { rows: Promise<object[]>; others: Promise<object[]>[] }

/** Sends a query under its settings. They end before the next query. */
function sendQuery(tx: Transaction, { name = '', text, values, settings }: Query, isLast: boolean): Sent {
  const before = settings ? [tx.query(settings, [])] : []
  const rows = tx.query(statement(name, text), values)
  const after = settings && !isLast ? [tx.query(plannerDefaultsSql, [])] : []
  return { rows, others: [...before, ...after] }
}
