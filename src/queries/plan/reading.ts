import type { Context } from '../../db/context.ts'
import { awaitPipelined, type Statement, shape, statement } from '../../db/db.ts'
import { retryConflicts } from '../../db/retry-policy.ts'
import {
  cachedDefinitions,
  type Definitions,
  isRelationship,
  reloadDefinitions,
} from '../../organizations/definitions.ts'
import { readSchemaVersionSql } from '../../organizations/definitions-sql.ts'
import type { Signal } from '../../process/signal.ts'
import type { Rights } from '../../route/field-rights.ts'
import { maxHints } from '../../values/did-you-mean.ts'
import { type Detail, Fault } from '../../values/errors.ts'
import {
  type ParsedFilter,
  type ParseOptions,
  parseFilter,
  type TestedAttribute,
  type UndeclaredKey,
} from '../grammar/parse.ts'
import { suggestField } from '../grammar/scopes.ts'
import { defaultSearchMs, findUnusedKeys } from '../grammar/undeclared-keys.ts'
import { Parameter, type Rendered } from './fragment.ts'
import { selectTerms } from './index-candidates.ts'

export type FilterOptions = Omit<ParseOptions, 'ofSegment'> & {
  signal?: Signal | undefined
  /** Receives the parsed filter before anything is read. It throws if the caller may not run the filter. */
  authorize?: (parsed: ParsedFilter) => void
  /** Receives the undeclared keys that no entity carries, before the page is read, if there are any. It may throw. */
  rejectUnusedKeys?: ((keys: UndeclaredKey[]) => void) | undefined
}

/**
 * The filter's undeclared keys that no entity carries, and the time by which its relative times were resolved, if it
 * has any.
 */
export type FilterNotes = { unusedKeys: UndeclaredKey[]; evaluated_at: string | undefined }

/** A statement that PostgreSQL plans for its values, with settings of the planner. */
export type PlannedQuery = Rendered & { settings: Statement }

/** Makes PostgreSQL plan a statement for its values, unlike the connection's other statements. */
export const planWithValuesSql = statement('', 'set local plan_cache_mode = force_custom_plan')

/** The definitions have changed since the request was parsed. kith parses and runs it again. */
export class DefinitionsChanged extends Error {}

/** A filter on the entities of a stack. */
type FilterRequest = FilterOptions & { stack_id: number; filter: unknown }

/**
 * Reads under the cached definitions, and again under newer ones if they change meanwhile. A 504 advises on indexes.
 */
export async function underDefinitions<T>(
  context: Context,
  request: FilterRequest,
  read: (reading: Reading) => Promise<T>,
): Promise<T> {
  const { signal } = request
  let definitions = await cachedDefinitions(context, signal)
  const attempt = async (previousError?: unknown) => {
    if (previousError) definitions = await reloadDefinitions(context, signal)
    const reading = new Reading(context, definitions, request)
    try {
      return await read(reading)
    } catch (error) {
      throw withIndexAdvice(error, reading.tested)
    }
  }
  return retryConflicts(attempt, error => error instanceof DefinitionsChanged, signal)
}

/** One attempt of {@link underDefinitions}. */
export class Reading {
  readonly definitions: Definitions
  /** The attributes that the parsed filters test. */
  readonly tested: TestedAttribute[] = []
  readonly context: Context
  readonly #request: FilterRequest

  constructor(context: Context, definitions: Definitions, request: FilterRequest) {
    this.context = context
    this.definitions = definitions
    this.#request = request
  }

  get caller(): Rights | undefined {
    return this.#request.caller
  }

  /** Parses the filter of the request, as {@link parse} does. */
  parseFilter(): Promise<{ parsed: ParsedFilter; notes: FilterNotes }> {
    const { filter, stack_id, boundFrom, nowMs, caller } = this.#request
    return this.parse(() => parseFilter(filter, this.definitions, stack_id, { boundFrom, nowMs, caller }))
  }

  /**
   * Parses a request, checks that the caller may run its filter, and finds the undeclared keys that no entity carries.
   * Throws the Fault of any step.
   */
  parse<Parsed extends ParsedFilter>(parse: () => Parsed): Promise<{ parsed: Parsed; notes: FilterNotes }> {
    const { signal, authorize, rejectUnusedKeys } = this.#request
    return this.check(async () => {
      const parsed = parse()
      this.tested.push(...parsed.tested)
      authorize?.(parsed)
      const searchMs = rejectUnusedKeys ? undefined : defaultSearchMs
      const unused = await findUnusedKeys(this.context.db, this.definitions, parsed.undeclared, {
        signal,
        searchMs,
      })
      const unusedKeys = unused.map((each, index) => (index < maxHints ? { ...each, hint: this.#hintFor(each) } : each))
      if (unusedKeys.length > 0) rejectUnusedKeys?.(unusedKeys)
      return { parsed, notes: { unusedKeys, evaluated_at: parsed.evaluated_at } }
    })
  }

  /**
   * The caller has the scopes that read the stacks of the filter. Across a relationship, an aggregate names a field by
   * more than its key.
   */
  #hintFor({ stack_id, key, path }: UndeclaredKey): string {
    const isNamedSo = stack_id === this.#request.stack_id || /^\/(filter|sort)/.test(path)
    return isNamedSo ? suggestField(this.caller, this.definitions, { stack_id, name: key }) : ''
  }

  /**
   * Returns the result of `work`. If it throws a Fault and the definitions are outdated, throws
   * {@link DefinitionsChanged} instead.
   */
  async check<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (fault) {
      const { organization_id } = this.definitions
      const [head] = await this.context.db.query<WithVersion>(
        readSchemaVersionSql,
        [organization_id],
        this.#request.signal,
      )
      this.#compare(head)
      throw fault
    }
  }

  /**
   * Runs a statement whose text depends only on the shape of the request, never on its values, so that each connection
   * plans it once. Its first row has the `schema_version` at the time of the statement. While the version is the same,
   * the indexes that the definitions name exist. Throws {@link DefinitionsChanged} if the version differs.
   */
  async run<R extends WithVersion>({ text, values }: Rendered): Promise<[R, ...R[]]> {
    const rows = await this.context.db.query<R>(shape(text), values, this.#request.signal)
    this.#compare(rows[0])
    return rows as [R, ...R[]]
  }

  /** Runs one statement as {@link runPlanned} does, and returns its first row. */
  async runOnePlanned<R extends object>(query: PlannedQuery): Promise<R> {
    return (await this.runPlanned(query))[0]![0] as R
  }

  /**
   * Runs statements that are planned for their values, each under its settings, in one snapshot. Throws
   * {@link DefinitionsChanged} if the snapshot has other definitions.
   */
  runPlanned(...queries: readonly PlannedQuery[]): Promise<object[][]> {
    return this.context.db.transaction(
      async tx => {
        const planning = tx.query(planWithValuesSql, [])
        const sent = queries.map(({ text, values, settings }) => ({
          setting: tx.query(settings, []),
          rows: tx.query(statement('', text), values),
        }))
        const comparing = tx.query<WithVersion>(readSchemaVersionSql, [this.definitions.organization_id])
        await awaitPipelined([planning, ...sent.flatMap(each => [each.setting, each.rows]), comparing, tx.commit()])
        this.#compare((await comparing)[0])
        return Promise.all(sent.map(({ rows }) => rows))
      },
      { signal: this.#request.signal, readsFirst: true, isSnapshot: true },
    )
  }

  #compare(head: WithVersion | undefined) {
    if (head?.schema_version !== this.definitions.version)
      throw new DefinitionsChanged('the definitions changed during the filter')
  }
}

type WithVersion = { schema_version: number }

/** Adds advice to the 504 of a filter: attributes to index, or a condition to add. Returns other errors unchanged. */
function withIndexAdvice(error: unknown, tested: readonly TestedAttribute[]): unknown {
  if (!(error instanceof Fault) || error.refusal.status !== 504) return error
  const details = tested.flatMap(adviceOn)
  const advice =
    details.length > 0
      ? 'Index the attributes that the details name.'
      : 'Add a condition that an index serves: on an indexed attribute, the email, or an identifier.'
  return new Fault({ ...error.refusal, message: `${error.refusal.message} ${advice}`, details }, { cause: error })
}

/** Advice on a test that no index answers although one could. */
function adviceOn({ attribute, tests, path, segment }: TestedAttribute): Detail[] {
  if (attribute.index?.ready || attribute.type === 'json' || isRelationship(attribute)) return []
  // The tests are compiled as if the attribute had an index, to find whether one would help.
  const indexed = { ...attribute, index: { id: 0, ready: true, indexed: 0, total: 0 } }
  if (!selectTerms(indexed, tests, new Parameter(0))) return []
  const where = segment === undefined ? '' : `in the segment ${segment}, on ${attribute.key}: `
  const message = attribute.index
    ? 'the index of this attribute is still being filled: GET /v1/schema/attributes shows how far it is'
    : `this attribute is not indexed: PATCH /v1/schema/attributes/${attribute.id} {"indexed": true}`
  return [{ path, message: where + message }]
}
