import { awaitPipelined, type Database, statement, type Transaction } from '../db/db.ts'
import { retryConflicts } from '../db/retry-policy.ts'
import type { ReadEntity } from '../entities/entity-row.ts'
import { type Count, type Page, type Position, pageOf, sizeToRead, startOf } from '../entities/read/pagination.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../organizations/definitions.ts'
import { readSchemaVersionSql } from '../organizations/definitions-sql.ts'
import type { Signal } from '../signal.ts'
import type { Condition } from './grammar.ts'
import { withIndexAdvice } from './index-advice.ts'
import { type ParsedFilter, parseFilter, type UndeclaredKey } from './parse.ts'
import { countStatement, type MatchingStatements, matchingStatements, type Query } from './select.ts'
import { defaultSearchMs, findUnusedKeys } from './undeclared-keys.ts'

// A generic plan is based neither on the page size nor on how many rows a value finds. The text differs from filter to
// filter, so PostgreSQL plans each statement anyway, except one with a name.
export const planWithValuesSql = statement('', 'set local plan_cache_mode = force_custom_plan')

export type FilterOptions = {
  signal?: Signal | undefined
  /** The source of the filter. All operands of a query string are texts. */
  boundFrom?: 'body' | 'query' | undefined
  /** Whether all matches are counted, as of the moment of the first query. */
  isCounted?: boolean | undefined
  /** Called with the parsed filter before anything is read. It throws if the caller may not run the filter. */
  authorize?: (condition: Condition) => void
  /** Called before the page is read, with the undeclared keys that no entity carries, if there are any. It may throw. */
  rejectUnusedKeys?: ((keys: UndeclaredKey[]) => void) | undefined
}

/** The count if it was asked for, and the filter's undeclared keys that no entity carries. */
export type FilterFindings = { counted: Count | undefined; unusedKeys: UndeclaredKey[] }

/** A page, and the definitions that the filter was parsed with. */
export type FilteredPage = Page & FilterFindings & { definitions: Definitions }

/** The definitions have changed since the filter was parsed. The filter is parsed and run again. */
export class DefinitionsChanged extends Error {}

/**
 * Reads a page of the entities of a stack that satisfy a filter, in order of their ids, under the definitions current at that
 * moment. Throws the Faults of `parseFilter`, and a conflict if the definitions change during every attempt.
 */
export async function readFilteredPage(
  db: Database,
  organization_id: number,
  stack_id: number,
  filter: unknown,
  position: Position,
  options: FilterOptions = {},
): Promise<FilteredPage> {
  return withFilter(db, organization_id, stack_id, filter, options, async ({ definitions, condition, run }) => ({
    ...(await readMatching(run, matchingStatements(condition, definitions, stack_id, position), position)),
    definitions,
  }))
}

/** A filter that was parsed and authorized with these definitions. `run` throws if they changed since. */
export type RunningFilter = {
  definitions: Definitions
  condition: Condition
  run<R extends object>(query?: Query): Promise<R[]>
}

/**
 * Parses and authorizes a filter on the entities of a stack, and reads with it by `read`. Does so again with the new definitions if
 * they change meanwhile. Advises on indexes if the time does not suffice.
 */
export async function withFilter<T extends object>(
  db: Database,
  organization_id: number,
  stack_id: number,
  filter: unknown,
  options: FilterOptions,
  read: (filter: RunningFilter) => Promise<T>,
): Promise<T & FilterFindings> {
  const parse = (definitions: Definitions) => parseFilter(filter, definitions, stack_id, options.boundFrom)
  return withParsed(db, organization_id, { stack_id, filter, parse }, options, async running => {
    const { definitions, parsed, unusedKeys } = running
    const { condition } = parsed
    const count = options.isCounted ? countStatement(condition, definitions, stack_id) : undefined
    let counted: Count | undefined
    const run = async <R extends object>(query?: Query) => {
      if (!count || counted || !query) return running.run<R>(query)
      const [counts, rows] = await running.runBoth<Count, R>(count, query)
      counted = counts[0]
      return rows
    }
    const found = await read({ definitions, condition, run })
    return { ...found, counted, unusedKeys }
  })
}

/** A request with a filter, parsed and authorized with these definitions. */
export type RunningRequest<Parsed extends ParsedFilter> = Pick<RunningFilter, 'definitions' | 'run'> & {
  /** As `run`, with two queries that see the same moment. */
  runBoth<One extends object, Other extends object>(one: Query, other: Query): Promise<[One[], Other[]]>
  parsed: Parsed
  unusedKeys: UndeclaredKey[]
}

/** As {@link withFilter}, for a request that has more to parse than its filter. */
export async function withParsed<Parsed extends ParsedFilter, T>(
  db: Database,
  organization_id: number,
  { stack_id, filter, parse }: { stack_id: number; filter: unknown; parse: (definitions: Definitions) => Parsed },
  options: FilterOptions,
  read: (request: RunningRequest<Parsed>) => Promise<T>,
): Promise<T> {
  const { signal, boundFrom = 'body' } = options
  let definitions = await cachedDefinitions(db, organization_id, signal)
  const attempt = async (previousError?: unknown) => {
    if (previousError) definitions = await reloadDefinitions(db, organization_id, signal)
    const current = definitions
    const runAll = (queries: Query[]) => runQueries(db, current, queries, signal) as Promise<never[][]>
    const run = async <R extends object>(query?: Query): Promise<R[]> => (await runAll(query ? [query] : []))[0] ?? []
    const runBoth = async (one: Query, other: Query) => (await runAll([one, other])) as [never[], never[]]
    try {
      const checked = await parseAllowed(db, current, () => parse(current), options).catch(async fault => {
        // The fault may come from outdated definitions. This throws DefinitionsChanged if they are, and the filter runs again.
        await run()
        throw fault
      })
      return await read({ definitions: current, run, runBoth, ...checked })
    } catch (error) {
      throw withIndexAdvice(error, { value: filter, stackId: stack_id, boundFrom }, current)
    }
  }
  return retryConflicts(attempt, error => error instanceof DefinitionsChanged, signal)
}

/** Parses a filter that the caller may run, and finds the undeclared keys that no entity carries. */
async function parseAllowed<Parsed extends ParsedFilter>(
  db: Database,
  definitions: Definitions,
  parse: () => Parsed,
  { signal, authorize, rejectUnusedKeys }: FilterOptions,
): Promise<{ parsed: Parsed; unusedKeys: UndeclaredKey[] }> {
  const parsed = parse()
  authorize?.(parsed.condition)
  const searchMs = rejectUnusedKeys ? undefined : defaultSearchMs
  const unusedKeys = await findUnusedKeys(db, definitions, parsed.undeclared, { signal, searchMs })
  if (unusedKeys.length > 0) rejectUnusedKeys?.(unusedKeys)
  return { parsed, unusedKeys }
}

async function readMatching(
  run: RunningFilter['run'],
  statements: MatchingStatements,
  position: Position,
): Promise<Page> {
  const found: ReadEntity[] = []
  let start: string | undefined = startOf(position)
  for (let round = 0; start !== undefined; round += 1) {
    const limit = sizeToRead(position) - found.length
    for (const read of await run<ReadEntity>(statements.rows(start, limit, round))) found.push(read)
    if (found.length >= sizeToRead(position) || !statements.boundary) break
    const [last]: { id: string }[] = await run(statements.boundary(start, round))
    start = last?.id
  }
  return pageOf(found, position)
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
      const sent = queries.map(query => sendQuery(tx, query))
      const comparing = tx.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id])
      await awaitPipelined([...planning, ...sent.flat(), comparing, tx.commit()])
      const [head] = await comparing
      if (head?.schema_version !== version) throw new DefinitionsChanged('the definitions changed during the filter')
      return Promise.all(sent.map(results => results.at(-1)!))
    },
    { signal, readsFirst: true, isSnapshot: true },
  )
}

/** Sends the settings of a query, which the later ones of the transaction have too, and the query. */
function sendQuery(tx: Transaction, { name = '', text, values, settings }: Query): Promise<object[]>[] {
  return [...(settings ? [tx.query(settings, [])] : []), tx.query(statement(name, text), values)]
}
