import { awaitPipelined, type Database, statement } from '../db/db.ts'
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
  /** Called with the parsed filter before anything is read. It throws if the caller may not run the filter. */
  authorize?: (condition: Condition) => void
  /** Called before the page is read, with the undeclared keys that no entity carries, if there are any. It may throw. */
  rejectUnusedKeys?: ((keys: UndeclaredKey[]) => void) | undefined
}

/** A page, the definitions that the filter was parsed with, and the filter's undeclared keys that no entity carries. */
export type FilteredPage = Page & { definitions: Definitions; unusedKeys: UndeclaredKey[] }

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
): Promise<T & { unusedKeys: UndeclaredKey[] }> {
  const parse = (definitions: Definitions) => parseFilter(filter, definitions, stack_id, options.boundFrom)
  return withParsed(db, organization_id, { stack_id, filter, parse }, options, async running => {
    const { definitions, parsed, unusedKeys, run } = running
    return { ...(await read({ definitions, condition: parsed.condition, run })), unusedKeys }
  })
}

/** A request with a filter, parsed and authorized with these definitions. */
export type RunningRequest<Parsed extends ParsedFilter> = Pick<RunningFilter, 'definitions' | 'run'> & {
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
    const run = <R extends object>(query?: Query) => runQuery<R>(db, current, query, signal)
    try {
      const checked = await parseAllowed(db, current, () => parse(current), options).catch(async fault => {
        // The fault may come from outdated definitions. This throws DefinitionsChanged if they are, and the filter runs again.
        await run()
        throw fault
      })
      return await read({ definitions: current, run, ...checked })
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

/** Counts the entities of a stack that satisfy a filter, under the definitions current at that moment. Throws what a page throws. */
export async function countFiltered(
  db: Database,
  organization_id: number,
  stack_id: number,
  filter: unknown,
  options: FilterOptions = {},
): Promise<Count> {
  return withFilter(db, organization_id, stack_id, filter, options, async ({ definitions, condition, run }) => {
    const [counted] = await run<Count>(countStatement(condition, definitions, stack_id))
    return counted!
  })
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
 * Runs a query, if there is one, and compares the version of the definitions afterwards. The indexes that the definitions
 * name exist as long as the version is the same. Throws {@link DefinitionsChanged} if it is not.
 */
function runQuery<R extends object>(
  db: Database,
  { organization_id, version }: Definitions,
  query: Query | undefined,
  signal: Signal | undefined,
): Promise<R[]> {
  return db.transaction(
    async tx => {
      const settings = [query?.name ? undefined : planWithValuesSql, query?.settings].filter(each => each !== undefined)
      const planned = settings.map(each => tx.query(each, []))
      const reading = query ? send(query) : Promise.resolve([])
      const comparing = tx.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id])
      await awaitPipelined([...planned, reading, comparing, tx.commit()])
      const [head] = await comparing
      if (head?.schema_version !== version) throw new DefinitionsChanged('the definitions changed during the filter')
      return (await reading) as R[]

      function send({ name = '', text, values }: Query): Promise<object[]> {
        return tx.query(statement(name, text), values)
      }
    },
    { signal, readsFirst: true },
  )
}
