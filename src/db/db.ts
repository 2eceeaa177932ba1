import pg from 'pg'
import type { Observer } from '../observer.ts'
import { parseExactly } from '../parse-json.ts'
import type { Signal } from '../signal.ts'
import { type Source, withClient } from './connection.ts'
import { copyFrom } from './copy.ts'
import type { CopyRows } from './copy-rows.ts'
import { watchLiveness } from './liveness.ts'
import { OutcomeUnknown } from './pg-errors.ts'
import { runPrepared } from './prepared.ts'
import { type Lane, Shares } from './shares.ts'
import { clearWarning, unknownOutcomeOf, watchWarnings } from './warnings.ts'

/** A statement of some room's `sql.ts`: constant text under a name, planned once on each connection. */
export type Statement = Readonly<{ name: string; text: string }>

export type Row = Record<string, unknown>

/** Names a constant text. Values go into `$1 …` alone. */
export function statement(name: string, text: string): Statement {
  return Object.freeze({ name, text })
}

/** A transaction in progress. Statements sent without awaiting in between travel in one flush. */
export type Transaction = {
  query<R extends Row = Row>(statement: Statement, values: unknown[]): Promise<R[]>
  /** Inserts rows by a `copy … from stdin (format binary)`. */
  copy(statement: Statement, rows: CopyRows): Promise<void>
  /**
   * Sends COMMIT. Rejects unless the server says COMMIT: after an error it says ROLLBACK and raises nothing. Rejects with
   * OutcomeUnknown where the server warns, or the connection is lost.
   */
  commit(): Promise<void>
}

export type TransactionOptions = {
  signal?: Signal | undefined
  /** How long one statement may wait for a lock. */
  lockTimeoutMs?: number | undefined
  /**
   * What is sent before the first answer stores nothing: it travels with BEGIN and saves a round trip. Whatever stores
   * must wait for BEGIN: were that hit by a cancel request, it would be committed by itself.
   */
  readsFirst?: boolean
}

/**
 * What reads and writes go through. `signal` is the request's deadline: when it aborts, the running statement is
 * cancelled on the server, and the promise settles only after that.
 */
export type Database = {
  query<R extends Row = Row>(statement: Statement, values: unknown[], signal?: Signal): Promise<R[]>
  /** Runs `work` between BEGIN and COMMIT; `work` may send the COMMIT itself, else it follows. Rolls back when it throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /** A connection of the caller's own, outside the pool (locks of a session, LISTEN). */
  connect(): Promise<pg.Client>
  close(): Promise<void>
  /** The database whose transaction in progress this one is made of; absent of one with connections of its own. */
  outer?: Database
  /** The database whose connections this one has a share of, see {@link rootOf}. */
  root?: Database
  /** Who is told of the work. */
  observer?: Observer | undefined
  /** Connections of the pool, and who waits for one; absent of one without a pool. */
  load?: () => { used: number; idle: number; waiting: number; heldBack: number }
}

/** A database with a pool of connections. */
export type DatabasePool = Database & {
  /** The database as an organization's requests see it: no more connections at a time than its share (shares.ts). */
  shareOf(organization_id: number, lane: Lane): Database
}

/** What a process keeps for a database, it keeps for the pool: all shares of it are the same data. */
export const rootOf = (db: Database): Database => db.root ?? db

/**
 * Waits for statements that were sent in one flush. When one fails, those behind it fail because of it: the error that
 * is thrown is the first in order, not the first to be noticed.
 */
export async function flushed(sent: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(sent)) if (result.status === 'rejected') throw result.reason
}

// Planning one of our statements costs 3 ms, so each is planned once, generically, on each connection. Each has an index to
// go by: a table that was small when the plan was made must not be scanned when it has grown (a PATCH with links fell to a
// fifth after the table of links had been analyzed empty).
const sessionOptions = [
  '-c enable_seqscan=off',
  '-c jit=off',
  '-c plan_cache_mode=force_generic_plan',
  '-c timezone=UTC',
  '-c datestyle=ISO',
  // A warning is how PostgreSQL tells that a COMMIT was not confirmed by its standby.
  '-c client_min_messages=warning',
]

/** RFC 3339 with milliseconds, from PostgreSQL's ISO text in UTC. */
export function parseTimestamp(text: string): string {
  const [moment, fraction = ''] = text.replace(' ', 'T').replace(/\+00$/, '').split('.')
  return `${moment}.${fraction.padEnd(3, '0').slice(0, 3)}Z`
}

const typeParsers: Record<number, (text: string) => unknown> = {
  [pg.types.builtins.INT8]: Number,
  [pg.types.builtins.JSON]: parseExactly,
  [pg.types.builtins.JSONB]: parseExactly,
  [pg.types.builtins.TIMESTAMPTZ]: parseTimestamp,
}

const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    typeParsers[oid] ?? pg.types.getTypeParser(oid, format)) as pg.CustomTypesConfig['getTypeParser'],
}

type DatabaseOptions = {
  connections: number
  /** Milliseconds after which the server itself ends a statement: a backstop behind the request's signal. */
  statementTimeoutMs: number
  /** How long a list or filter waits for its organization's share; half of `statementTimeoutMs` unless given. */
  pagePatienceMs?: number
  application_name?: string
  observer?: Observer | undefined
}

/** Options that the URL itself names would take the place of ours: they come before them instead. */
function takeOptions(text: string): { url: string; asked: string[] } {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const asked = url?.searchParams.getAll('options') ?? []
  url?.searchParams.delete('options')
  return { url: asked.length > 0 ? url!.href : text, asked }
}

function openPool(settings: pg.ClientConfig, max: number): pg.Pool {
  const pool = new pg.Pool({ ...settings, max, pipeline: true } as pg.PoolConfig)
  // A connection that dies inside a transaction would crash the process without a listener of its own.
  pool.on('connect', client => {
    client.on('error', () => {})
    watchWarnings(client)
  })
  pool.on('error', () => {})
  return pool
}

/** Opens a pool on `url`. Nothing is connected before the first query. */
export function openDatabase(text: string, options: DatabaseOptions): DatabasePool {
  const { url, asked } = takeOptions(text)
  const settings = {
    connectionString: url,
    options: [
      ...asked,
      ...sessionOptions,
      `-c statement_timeout=${options.statementTimeoutMs}`,
      `-c idle_in_transaction_session_timeout=${options.statementTimeoutMs}`,
    ].join(' '),
    application_name: options.application_name ?? 'kith',
    types,
    keepAlive: true,
    connectionTimeoutMillis: options.statementTimeoutMs,
  }
  const pool = openPool(settings, options.connections)
  const pulse = watchLiveness(new pg.Client(settings))
  const connect = async () => {
    const client = new pg.Client(settings)
    client.on('error', () => {})
    await client.connect()
    return client
  }
  const { observer } = options
  const shares = new Shares({
    connections: options.connections,
    pagePatienceMs: options.pagePatienceMs ?? options.statementTimeoutMs / 2,
    refused: () => observer?.overloaded('share'),
  })
  const shared: Record<Lane, Map<number, Database>> = { reads: new Map(), pages: new Map(), writes: new Map() }
  const root: DatabasePool = {
    ...runningOn({ pool, pulse }, observer),
    connect,
    observer,
    load: () => ({
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      heldBack: shares.waiting,
    }),
    close: () => {
      pulse.stop()
      return pool.end()
    },
    shareOf: (organization_id, lane) => {
      const known = shared[lane].get(organization_id)
      if (known) return known
      const place = shares.of(organization_id, lane)
      const share = { ...runningOn({ pool, pulse, place }, observer), connect, observer, root, close: async () => {} }
      shared[lane].set(organization_id, share)
      return share
    },
  }
  return root
}

function runningOn(source: Source, observer: Observer | undefined): Pick<Database, 'query' | 'transaction'> {
  return {
    query: (statement, values, signal) =>
      withClient(source, signal, async client => (await run(client, statement, values, observer, signal)) as never[]),
    transaction: (work, options = {}) =>
      withClient(source, options.signal, client => transact(client, work, options, observer)),
  }
}

async function run(
  client: pg.PoolClient,
  statement: Statement,
  values: unknown[],
  observer: Observer | undefined,
  under: object | undefined,
): Promise<Row[]> {
  const { rows } = await observed(observer, statement.name, under, () => runPrepared(client, statement, values))
  return rows
}

/** Sends a statement, and tells of it when it is answered. */
async function observed(
  observer: Observer | undefined,
  name: string,
  under: object | undefined,
  send: () => Promise<pg.QueryResult>,
): Promise<pg.QueryResult> {
  if (!observer) return send()
  const begunMs = performance.now()
  let failed = true
  try {
    const result = await send()
    failed = false
    return result
  } finally {
    observer.statement(name, begunMs, failed, under)
  }
}

async function transact<T>(
  client: pg.PoolClient,
  work: (tx: Transaction) => Promise<T>,
  { signal, lockTimeoutMs, readsFirst }: TransactionOptions,
  observer: Observer | undefined,
): Promise<T> {
  let committing: Promise<unknown> | undefined
  clearWarning(client)
  const limited = lockTimeoutMs === undefined ? '' : `; set local lock_timeout = ${Math.floor(lockTimeoutMs)}`
  let failedToBegin: Error | undefined
  const begun = client.query(`begin${limited}`).then(
    () => {},
    (error: Error) => {
      failedToBegin = error
    },
  )
  const begin = async () => {
    if (!readsFirst) await begun
    if (failedToBegin) throw failedToBegin
  }
  const tx: Transaction = {
    query: async (statement, values) => {
      await begin()
      signal?.throwIfAborted()
      return (await run(client, statement, values, observer, tx)) as never[]
    },
    copy: async (statement, rows) => {
      await begin()
      signal?.throwIfAborted()
      await observed(observer, statement.name, tx, () => copyFrom(client, statement.text, rows))
    },
    commit: async () => {
      await begin()
      signal?.throwIfAborted()
      committing = observed(observer, 'commit', tx, () => commit(client))
      await committing
    },
  }
  const end = observer?.tracer?.begin('transaction', signal, tx)
  let done = false
  try {
    const result = await work(tx)
    if (!committing) await tx.commit()
    done = true
    return result
  } catch (error) {
    // A ROLLBACK that a late cancel request hits leaves the transaction open: such a connection is not used again.
    if (!committing) await client.query('rollback').catch(() => (client as unknown as pg.Client).end())
    // A COMMIT that was sent behind the failed statement ends the transaction; only then is it over.
    else await committing.catch(throwDoubt)
    throw error
  } finally {
    end?.(!done)
  }
}

/** COMMIT, up to an answer that leaves no doubt. */
function commit(client: pg.PoolClient): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    // The callback runs before the next message is read: a promise would see later warnings too.
    client.query('commit', (error: Error | null, result) => {
      if (error) reject(error instanceof pg.DatabaseError ? error : connectionLost(error))
      else if (result.command !== 'COMMIT') reject(new Error(`the transaction ended in ${result.command}`))
      else if (unknownOutcomeOf(client)) reject(unknownOutcomeOf(client))
      else resolve(result)
    })
  })
}

/** Whatever else failed: that nobody knows the outcome comes first. */
function throwDoubt(failure: unknown) {
  if (failure instanceof OutcomeUnknown) throw failure
}

const connectionLost = (cause: Error) => new OutcomeUnknown('the connection was lost at COMMIT', { cause })
