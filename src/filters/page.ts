import { type Database, flushed, statement } from '../db/db.ts'
import { conflictFault, maxAttempts, pauseAfter } from '../db/retry-policy.ts'
import type { Read } from '../entities/entity-row.ts'
import { type Page, type Position, pageOf, sizeToRead, startOf } from '../entities/pagination.ts'
import { cachedDefinitions, type Definitions, reloadDefinitions } from '../organizations/definitions.ts'
import { readSchemaVersionSql } from '../organizations/definitions-sql.ts'
import type { Signal } from '../signal.ts'
import type { Condition } from './grammar.ts'
import { withIndexAdvice } from './index-advice.ts'
import { type ParsedFilter, parseFilter, type UndeclaredKey } from './parse.ts'
import { matchingStatements, type Query } from './select.ts'
import { defaultSearchMs, findUncarried } from './undeclared-keys.ts'

// A generic plan knows neither the page's size nor how many a value finds. The text differs from filter to filter, so
// it is planned each time anyway.
const planWithValuesSql = statement('', 'set local plan_cache_mode = force_custom_plan')

export type FilterOptions = {
  signal?: Signal | undefined
  /** Where the filter came from: the operands of a query string are texts. */
  boundFrom?: 'body' | 'query' | undefined
  /** Called with what the filter was understood as, before anything is read; may throw. */
  permit?: (condition: Condition) => void
  /** Called with the keys that are undeclared and that no entity carries, before the page is read; may throw. */
  refuseUncarried?: ((keys: UndeclaredKey[]) => void) | undefined
}

/** A page, the definitions by which the filter was understood, and its undeclared keys that no entity carries. */
export type FilteredPage = Page & { definitions: Definitions; uncarried: UndeclaredKey[] }

/** The definitions have changed since the filter was understood: it is understood again. */
class DefinitionsMovedOn extends Error {}

/**
 * A page of the entities of a stack that a filter holds of, in order of their ids, by the definitions that stood when it
 * ran. Throws the Faults of `parseFilter`.
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
  for (let attempt = 1; ; attempt += 1) {
    try {
      return { ...(await runUnder(db, definitions, stack_id, filter, position, options)), definitions }
    } catch (error) {
      if (!(error instanceof DefinitionsMovedOn)) throw withIndexAdvice(error, filter, definitions, stack_id)
      if (attempt === maxAttempts) throw conflictFault(error)
      await pauseAfter(attempt, options.signal)
      definitions = await reloadDefinitions(db, organization_id, options.signal)
    }
  }
}

async function runUnder(
  db: Database,
  definitions: Definitions,
  stack_id: number,
  filter: unknown,
  position: Position,
  { signal, boundFrom, permit, refuseUncarried }: FilterOptions,
): Promise<Page & { uncarried: UndeclaredKey[] }> {
  const run = <R extends object>(query?: Query) => runQuery<R>(db, definitions, query, signal)
  let parsed: ParsedFilter
  let uncarried: UndeclaredKey[]
  try {
    parsed = parseFilter(filter, definitions, stack_id, boundFrom)
    permit?.(parsed.condition)
    const searchMs = refuseUncarried ? undefined : defaultSearchMs
    uncarried = await findUncarried(db, definitions, parsed.undeclared, { signal, searchMs })
    if (uncarried.length > 0) refuseUncarried?.(uncarried)
  } catch (fault) {
    // Newer definitions may understand what these do not.
    await run()
    throw fault
  }
  const statements = matchingStatements(parsed.condition, definitions, stack_id, position)
  const found: Read[] = []
  let start: string | undefined = startOf(position)
  for (let round = 0; start !== undefined; round += 1) {
    const wanted = sizeToRead(position) - found.length
    for (const read of await run<Read>(statements.rows(start, wanted, round))) found.push(read)
    if (found.length >= sizeToRead(position) || !statements.boundary) break
    const [last]: { id: string }[] = await run(statements.boundary(start, round))
    start = last?.id
  }
  return { ...pageOf(found, position), uncarried }
}

/**
 * Runs a query, or nothing, and compares the definitions' version afterwards: while they stand, so do the indexes that
 * they tell of. Throws {@link DefinitionsMovedOn} where they do not.
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
      await flushed([planned, reading, comparing, tx.commit()])
      const [head] = await comparing
      if (head?.schema_version !== version) throw new DefinitionsMovedOn('the definitions have changed meanwhile')
      return (await reading) as R[]

      function send({ text, values }: Query): Promise<object[]> {
        return tx.query(statement('', text), values)
      }
    },
    { signal, readsFirst: true },
  )
}
