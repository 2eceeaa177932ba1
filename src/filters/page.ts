import { awaitPipelined, type Database, statement } from '../db/db.ts'
import { retryConflicts } from '../db/retry-policy.ts'
import type { ReadEntity } from '../entities/entity-row.ts'
import { type Page, type Position, pageOf, sizeToRead, startOf } from '../entities/pagination.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../organizations/definitions.ts'
import { readSchemaVersionSql } from '../organizations/definitions-sql.ts'
import type { Signal } from '../signal.ts'
import type { Condition } from './grammar.ts'
import { withIndexAdvice } from './index-advice.ts'
import { type ParsedFilter, parseFilter, type UndeclaredKey } from './parse.ts'
import { matchingStatements, type Query } from './select.ts'
import { defaultSearchMs, findUnusedKeys } from './undeclared-keys.ts'

// A generic plan is based neither on the page size nor on how many rows a value finds. The text differs from filter to
// filter, so PostgreSQL plans each statement anyway.
const planWithValuesSql = statement('', 'set local plan_cache_mode = force_custom_plan')

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
class DefinitionsChanged extends Error {}

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
  let definitions = await cachedDefinitions(db, organization_id, options.signal)
  const read = async (previousError?: unknown) => {
    if (previousError) definitions = await reloadDefinitions(db, organization_id, options.signal)
    try {
      return { ...(await readPageWithDefinitions(db, definitions, stack_id, filter, position, options)), definitions }
    } catch (error) {
      const part = { value: filter, stackId: stack_id, boundFrom: options.boundFrom ?? 'body' }
      throw withIndexAdvice(error, part, definitions)
    }
  }
  return retryConflicts(read, error => error instanceof DefinitionsChanged, options.signal)
}

async function readPageWithDefinitions(
  db: Database,
  definitions: Definitions,
  stack_id: number,
  filter: unknown,
  position: Position,
  { signal, boundFrom, authorize, rejectUnusedKeys }: FilterOptions,
): Promise<Page & { unusedKeys: UndeclaredKey[] }> {
  const run = <R extends object>(query?: Query) => runQuery<R>(db, definitions, query, signal)
  let parsed: ParsedFilter
  let unusedKeys: UndeclaredKey[]
  try {
    parsed = parseFilter(filter, definitions, stack_id, boundFrom)
    authorize?.(parsed.condition)
    const searchMs = rejectUnusedKeys ? undefined : defaultSearchMs
    unusedKeys = await findUnusedKeys(db, definitions, parsed.undeclared, { signal, searchMs })
    if (unusedKeys.length > 0) rejectUnusedKeys?.(unusedKeys)
  } catch (fault) {
    // The fault may come from outdated definitions. This throws DefinitionsChanged if they are, and the filter runs again.
    await run()
    throw fault
  }
  const statements = matchingStatements(parsed.condition, definitions, stack_id, position)
  const found: ReadEntity[] = []
  let start: string | undefined = startOf(position)
  for (let round = 0; start !== undefined; round += 1) {
    const limit = sizeToRead(position) - found.length
    for (const read of await run<ReadEntity>(statements.rows(start, limit, round))) found.push(read)
    if (found.length >= sizeToRead(position) || !statements.boundary) break
    const [last]: { id: string }[] = await run(statements.boundary(start, round))
    start = last?.id
  }
  return { ...pageOf(found, position), unusedKeys }
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
      const planned = tx.query(planWithValuesSql, [])
      const reading = query ? send(query) : Promise.resolve([])
      const comparing = tx.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id])
      await awaitPipelined([planned, reading, comparing, tx.commit()])
      const [head] = await comparing
      if (head?.schema_version !== version) throw new DefinitionsChanged('the definitions changed during the filter')
      return (await reading) as R[]

      function send({ text, values }: Query): Promise<object[]> {
        return tx.query(statement('', text), values)
      }
    },
    { signal, readsFirst: true },
  )
}
