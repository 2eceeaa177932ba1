import { hash } from 'node:crypto'
import pg from 'pg'
import type { Observer } from '../process/observer.ts'
import type { Signal } from '../process/signal.ts'
import { parseExactly } from '../values/parse-json.ts'
import { adaptToCitus, unknownOutcomeOfShard } from './citus.ts'
import { type Source, withClient } from './connection.ts'
import { type CopyInto, copyFrom } from './copy.ts'
import { type MasterKeys, noMasterKeys } from './master-keys.ts'
import { OutcomeUnknown } from './pg-errors.ts'
import { isPrepared, runPrepared, shapePrefix } from './prepared.ts'
import { ConnectionShares, type Lane } from './servers/connection-shares.ts'
import { watchLiveness } from './servers/liveness.ts'
import { ServerClient, Servers } from './servers/servers.ts'
import { clearWarning, unknownOutcomeOf, watchWarnings } from './warnings.ts'

/** A statement of a module's `sql.ts`: constant text with a name, planned once per connection. */
export type Statement = Readonly<{ name: string; text: string }>

export type Row = Record<string, unknown>

/** Defines a statement. Its text is constant, and values are passed as `$1 …` only. */
export function statement(name: string, text: string): Statement {
  return Object.freeze({ name, text })
}

/** A statement whose text depends on the shape of a request. Its name is a hash of the text. */
export const shape = (text: string): Statement => statement(shapePrefix + hash('sha1', text, 'base64url'), text)

/** A transaction in progress. Statements that are sent without awaiting in between travel in one flush. */
export type Transaction = {
  query<R extends Row = Row>(statement: Statement, values: unknown[]): Promise<R[]>
  /** Appends rows to a table. Each row is an object of its columns. An absent column is null. */
  append(into: CopyInto, rows: readonly Row[]): Promise<unknown>
  /**
   * Sends COMMIT. Rejects unless the server answers COMMIT: after an error it answers ROLLBACK and raises nothing.
   * Rejects with OutcomeUnknown if the server warns or the connection is lost.
   */
  commit(): Promise<void>
  /**
   * Sends ROLLBACK. After a lock, COMMIT would wait for the disk and a synchronous standby even if nothing was stored.
   */
  rollback(): Promise<void>
}

export type TransactionOptions = {
  signal?: Signal | undefined
  /** The longest wait of one statement for a lock, in milliseconds. */
  lockTimeoutMs?: number | undefined
  /**
   * True if `work` stores nothing until the first result arrives. Its first statements then travel with BEGIN and save
   * a round trip. A statement that stores must wait for BEGIN: if a cancel request hits BEGIN, the statement would
   * commit by itself.
   */
  readsFirst?: boolean
  /**
   * True if all statements see the state of the database at the first statement. A nested transaction has no separate
   * snapshot.
   */
  isSnapshot?: boolean
}

/**
 * Runs reads and writes. `signal` is the request's deadline. When it aborts, the running statement is
 * cancelled on the server, and the promise settles only after that.
 */
export type Database = {
  query<R extends Row = Row>(statement: Statement, values: unknown[], signal?: Signal): Promise<R[]>
  /** Runs `work` between BEGIN and COMMIT. `work` may send the COMMIT itself. Rolls back when it throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /** Opens a separate connection outside the pool (session locks, LISTEN). The caller closes it. */
  connect(): Promise<pg.Client>
  close(): Promise<void>
  /** For a database that is a transaction in progress: the database that the transaction belongs to. */
  outer?: Database
  /** For a share: the database whose connections it uses, see {@link rootOf}. */
  root?: Database
  /** Identifies the server and timeline of a database with its own connections, see {@link dataKeyOf}. */
  generation?: () => object
  observer?: Observer | undefined
  /** The keys that wrap its secrets, see {@link masterKeysOf}. */
  masterKeys?: MasterKeys | undefined
  /**
   * The connections of the pool, the requests that wait for a connection, and the requests that wait for their
   * organization's share. Absent without a pool.
   */
  load?: () => { used: number; idle: number; waiting: number; waitingForShare: number }
}

export type DatabasePool = Database & {
  /**
   * The database for the requests of one organization, limited to its share of the connections (connection-shares.ts).
   */
  shareOf(organization_id: number, lane: Lane): Database
}

/** The key for state that a process holds per database: the pool, because all of its shares have the same data. */
export const rootOf = (db: Database): Database => db.root ?? db

/** The keys that wrap the secrets of a database. */
export const masterKeysOf = ({ masterKeys }: Pick<Database, 'masterKeys'>): MasterKeys => masterKeys ?? noMasterKeys

/**
 * The key for cached stored data. A switch to another server or timeline replaces it, because the new primary may lack
 * data that the old one showed. Take it before the read whose result is cached.
 */
export const dataKeyOf = (db: Database): object => rootOf(db).generation?.() ?? rootOf(db)

/**
 * Waits for pipelined statements. When one fails, the later ones fail because of it. So this throws the first error in
 * order of the statements, not in time.
 */
export async function awaitPipelined(sent: readonly Promise<unknown>[]): Promise<void> {
  for (const result of await Promise.allSettled(sent)) if (result.status === 'rejected') throw result.reason
}

// Planning a statement costs 3 ms, so each is planned once per connection, with a generic plan. Every statement has an
// index to use. Sequential scans are off because a plan made for a small table would still scan it after it has grown:
// the throughput of a PATCH with links fell to a fifth after the links table had been analyzed while empty.
const sessionOptions = [
  '-c enable_seqscan=off',
  '-c jit=off',
  '-c plan_cache_mode=force_generic_plan',
  '-c timezone=UTC',
  '-c datestyle=ISO',
  // PostgreSQL warns if the standby did not confirm a COMMIT.
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

/** The maximum wait for the choice among several servers. With it, a frozen server causes a 503 within 3 s too. */
const chooseMs = 2_000

type DatabaseOptions = {
  connections: number
  /** The time in milliseconds after which the server itself ends a statement. It backs up the request's signal. */
  statementTimeoutMs: number
  /**
   * The maximum wait of a list or filter for its organization's share, in milliseconds. The default is half of
   * `statementTimeoutMs`.
   */
  pagePatienceMs?: number
  application_name?: string
  /** Rejects all writes, even on a primary. */
  isReadOnly?: boolean
  observer?: Observer | undefined
  masterKeys?: MasterKeys | undefined
  /** Receives a sentence when the connections move to another server. */
  report?: ((message: string) => void) | undefined
}

function openPool(servers: Servers, max: number): pg.Pool {
  const Client = class extends ServerClient {
    constructor() {
      super(servers, { pipeline: true } as pg.ClientConfig)
    }
  }
  const { connectionTimeoutMillis } = servers.settings
  const pool = new pg.Pool({ connectionTimeoutMillis, max, Client } as pg.PoolConfig)
  pool.on('connect', client => {
    watchWarnings(client)
    adaptToCitus(client)
  })
  pool.on('error', () => {})
  return pool
}

/**
 * The server ends a transaction whose process is stuck after this time, in milliseconds. The transaction may lock the
 * head of an organization, whose other writes wait for at most ten seconds.
 */
const maxIdleMs = 5_000

/**
 * Opens a pool on a URL of one or several servers. Nothing is connected before the first query. Throws
 * DatabaseUrlError.
 */
export function openDatabase(url: string, options: DatabaseOptions): DatabasePool {
  const settings = {
    options: [
      ...sessionOptions,
      ...(options.isReadOnly ? ['-c default_transaction_read_only=on'] : []),
      `-c statement_timeout=${options.statementTimeoutMs}`,
      `-c idle_in_transaction_session_timeout=${Math.min(options.statementTimeoutMs, maxIdleMs)}`,
    ].join(' '),
    application_name: options.application_name ?? 'kith',
    types,
    keepAlive: true,
    connectionTimeoutMillis: options.statementTimeoutMs,
  }
  const servers = new Servers(url, settings, { waitMs: chooseMs, report: options.report })
  const pool = openPool(servers, options.connections)
  const liveness = watchLiveness(
    () => servers.address,
    address => servers.forget(address),
  )
  const connect = async () => {
    const client = await servers.connect()
    adaptToCitus(client)
    return client
  }
  const { observer, masterKeys } = options
  const shares = new ConnectionShares({
    connections: options.connections,
    pagePatienceMs: options.pagePatienceMs ?? options.statementTimeoutMs / 2,
    onRefused: () => observer?.overloaded('share'),
  })
  const shareDatabases: Record<Lane, Map<number, Database>> = { reads: new Map(), pages: new Map(), writes: new Map() }
  const root: DatabasePool = {
    ...createQueries({ pool, servers, liveness }, observer),
    connect,
    generation: () => servers.generation,
    observer,
    masterKeys,
    load: () => ({
      used: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      waitingForShare: shares.waiting,
    }),
    close: () => {
      liveness.stop()
      return pool.end()
    },
    shareOf: (organization_id, lane) => {
      const existing = shareDatabases[lane].get(organization_id)
      if (existing) return existing
      const takeShare: Source['takeShare'] = signal => shares.take(organization_id, lane, signal)
      const queries = createQueries({ pool, servers, liveness, takeShare }, observer)
      const share = { ...queries, connect, observer, masterKeys, root, close: async () => {} }
      shareDatabases[lane].set(organization_id, share)
      return share
    },
  }
  return root
}

function createQueries(source: Source, observer: Observer | undefined): Pick<Database, 'query' | 'transaction'> {
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
  parent: object | undefined,
): Promise<Row[]> {
  const isShape = statement.name.startsWith(shapePrefix)
  if (isShape) observer?.cache('statement', isPrepared(client, statement.name))
  // One label for each shape would be too many labels.
  const name = isShape ? 'filter' : statement.name
  const { rows } = await observed(observer, name, parent, () => runPrepared(client, statement, values))
  return rows
}

/** Sends a statement, and reports its end to the observer. */
async function observed(
  observer: Observer | undefined,
  name: string,
  parent: object | undefined,
  send: () => Promise<pg.QueryResult>,
): Promise<pg.QueryResult> {
  if (!observer) return send()
  const startedMs = performance.now()
  let failed = true
  try {
    const result = await send()
    failed = false
    return result
  } finally {
    observer.statement(name, startedMs, failed, parent)
  }
}

async function transact<T>(
  client: pg.PoolClient,
  work: (tx: Transaction) => Promise<T>,
  { signal, lockTimeoutMs, readsFirst, isSnapshot }: TransactionOptions,
  observer: Observer | undefined,
): Promise<T> {
  let ending: Promise<unknown> | undefined
  clearWarning(client)
  let beginError: Error | undefined
  const started: Promise<unknown>[] = [client.query(isSnapshot ? 'begin isolation level repeatable read' : 'begin')]
  // Citus would send a text with both commands to a worker again for each command.
  if (lockTimeoutMs !== undefined) started.push(client.query(`set local lock_timeout = ${Math.floor(lockTimeoutMs)}`))
  const beginning = awaitPipelined(started).then(
    () => {},
    (error: Error) => {
      beginError = error
    },
  )
  // A read whose result is no longer awaited must not run in the next transaction of the connection.
  let isOver = false
  const begin = async () => {
    if (!readsFirst) await beginning
    if (beginError) throw beginError
    if (isOver) throw new Error('the transaction has ended')
  }
  const tx: Transaction = {
    query: async (statement, values) => {
      await begin()
      signal?.throwIfAborted()
      return (await run(client, statement, values, observer, tx)) as never[]
    },
    append: async (into, rows) => {
      await begin()
      signal?.throwIfAborted()
      const copying = copyFrom(client, into, rows)
      return observed(observer, into.name, tx, () => copying)
    },
    commit: async () => {
      await begin()
      signal?.throwIfAborted()
      ending = observed(observer, 'commit', tx, () => commit(client))
      await ending
    },
    rollback: async () => {
      await begin()
      ending = observed(observer, 'rollback', tx, () => client.query('rollback'))
      await ending
    },
  }
  const end = observer?.tracer?.begin('transaction', signal, tx)
  let done = false
  try {
    const result = await work(tx)
    if (!ending) await tx.commit()
    done = true
    return result
  } catch (error) {
    // A COMMIT that was sent after the failed statement ends the transaction, so its answer is awaited.
    const failure = await ending?.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    // A late cancel request may hit the COMMIT before it begins. If another one hits the ROLLBACK, the connection is
    // closed.
    if (!ending || failure instanceof pg.DatabaseError)
      await client.query('rollback').catch(() => (client as unknown as pg.Client).end())
    if (failure instanceof OutcomeUnknown) throw failure
    throw error
  } finally {
    isOver = true
    end?.(!done)
  }
}

/** Sends COMMIT. Resolves only if the server confirms it without a warning. */
function commit(client: pg.PoolClient): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    // The callback runs before the next message is read. A promise would also see later warnings.
    client.query('commit', (error: Error | null, result) => {
      if (error)
        reject(
          unknownOutcomeOfShard(error) ?? (error instanceof pg.DatabaseError ? error : commitConnectionLost(error)),
        )
      else if (result.command !== 'COMMIT') reject(new Error(`the transaction ended in ${result.command}`))
      else if (unknownOutcomeOf(client)) reject(unknownOutcomeOf(client))
      else resolve(result)
    })
  })
}

const commitConnectionLost = (cause: Error) => new OutcomeUnknown('the connection was lost at COMMIT', { cause })
