import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { parseDatabaseUrl, type ServerAddress, type SessionAttributes } from '../../process/database-url.ts'
import { type Candidate, chooseServer, isForWrites, refusalOf, type Seen, type ServerState } from './server-choice.ts'

/** The maximum time for a server to answer when kith chooses among several. */
const patienceMs = 10_000
/**
 * After the first usable server, the others may answer within this time, because one of them may be a better choice.
 */
const graceMs = 1_000
/** The interval between requests to an unusable server while others have not answered. */
const askAgainMs = 250
/** The time for which a failed choice is not repeated. */
const failureMs = 250
/** The longest wait for the state of a server, once it has accepted the login. */
const stateMs = 2_000

/** No host of the URL may be used. The message is a sentence that names each host, without passwords. */
export class NoServer extends Error {}

type ServersOptions = {
  /**
   * The maximum time that a connection waits until a server is chosen. By default, it waits until every server has
   * answered, or 10 s.
   */
  waitMs?: number
  /** Receives a sentence when connections move to another server. */
  report?: ((message: string) => void) | undefined
}

type Server = ServerAddress & { name: string; index: number }

/**
 * The servers of a URL, and the one that new connections go to. With one host and `any`, there is no choice, and
 * connections are not checked.
 */
export class Servers {
  /**
   * Identifies the data that connections see. A switch to another server or timeline replaces it and outdates older
   * connections.
   */
  generation: object = {}
  readonly wants: SessionAttributes
  readonly isChecked: boolean
  /** The settings of a connection, with the address of the first server. */
  readonly settings: pg.ClientConfig
  readonly #servers: readonly Server[]
  #current: Server | undefined
  #last: Server | undefined
  #seen: Seen | undefined
  #choosing: Promise<Server> | undefined
  #failure: { error: NoServer; untilMs: number } | undefined
  /** The reasons why servers may not be used, by index. */
  #reasons: (string | undefined)[] = []
  readonly #waitMs: number | undefined
  readonly #report: (message: string) => void

  /** `settings` apply to every connection. */
  constructor(url: string, settings: pg.ClientConfig, { waitMs, report = () => {} }: ServersOptions = {}) {
    this.#waitMs = waitMs
    const { urls, wants, options } = parseDatabaseUrl(url)
    this.wants = wants
    const sessionOptions = [...options, settings.options ?? ''].join(' ').trim()
    this.settings = { ...settings, connectionString: urls[0], ...(sessionOptions && { options: sessionOptions }) }
    this.#servers = urls.map((connectionString, index) => {
      const { host, port } = new pg.Client({ connectionString })
      return { host, port, index, name: nameOf({ host, port }) }
    })
    this.isChecked = this.#servers.length > 1 || wants !== 'any'
    if (this.#servers.length === 1) this.#current = this.#servers[0]
    this.#report = report
  }

  /** The server that connections go to, or undefined until it is chosen. */
  get address(): ServerAddress | undefined {
    return this.#current
  }

  /** Opens a connection to the chosen server. The caller closes it. */
  async connect(): Promise<pg.Client> {
    const client = new ServerClient(this)
    try {
      return await client.connect()
    } catch (error) {
      void client.end().catch(() => {})
      throw error
    }
  }

  /** Whether a connection belongs to the current server and timeline. */
  isCurrent(client: object): boolean {
    return (client as ServerClient).generation === this.generation
  }

  /** Lets the next connection choose again: a connection to this server was lost, or could not be opened. */
  forget(server: ServerAddress | undefined): void {
    if (this.#servers.length > 1 && server === this.#current) this.#current = undefined
  }

  /** Outdates all connections, because their server may no longer be used. */
  retire(client: object): void {
    if (!this.isChecked || !this.isCurrent(client)) return
    this.generation = {}
    this.forget(this.#current)
  }

  /** The server for a new connection. Throws {@link NoServer}. */
  async choose(): Promise<Server> {
    if (this.#current) return this.#current
    if (this.#failure && performance.now() < this.#failure.untilMs) throw this.#failure.error
    this.#choosing ??= this.#chooseNow().finally(() => {
      this.#choosing = undefined
    })
    if (this.#waitMs === undefined) return this.#choosing
    return Promise.race([this.#choosing, this.#failLater(this.#waitMs)])
  }

  async #failLater(waitMs: number): Promise<never> {
    await setTimeout(waitMs, undefined, { ref: false })
    throw this.#noServer()
  }

  /**
   * Records the state of a server to which a connection was opened. Returns the generation of the connection. Throws
   * {@link NoServer} if the server may not be used.
   */
  admit(server: Server, state: ServerState): object {
    const refusal = refusalOf(state, this.wants, this.#seen)
    if (refusal) throw new NoServer(`The server ${server.name} may not be used: it ${refusal}.`)
    // If another connection has chosen another server meanwhile, this one is outdated from the beginning.
    if (this.#current !== undefined && server !== this.#current) return {}
    this.#adopt(server, state)
    return this.generation
  }

  async #chooseNow(): Promise<Server> {
    const candidates: Candidate[] = []
    const unanswered = new Set(this.#servers)
    const allAnswered = Promise.withResolvers<void>()
    const found = Promise.withResolvers<void>()
    const asking = new Set<ServerClient>()
    let isOver = false
    this.#reasons = []
    const ask = async (server: Server) => {
      while (!isOver) {
        const state = await this.#examine(server, asking)
        const refusal = typeof state === 'string' ? state : refusalOf(state, this.wants, this.#seen)
        unanswered.delete(server)
        if (unanswered.size === 0) allAnswered.resolve()
        if (typeof state !== 'string' && refusal === undefined) {
          candidates.push({ index: server.index, state })
          return found.resolve()
        }
        this.#reasons[server.index] = refusal
        if (unanswered.size === 0) return
        await Promise.race([allAnswered.promise, setTimeout(askAgainMs, undefined, { ref: false })])
      }
    }
    const grace = found.promise.then(() => setTimeout(graceMs, undefined, { ref: false }))
    await Promise.race([Promise.all(this.#servers.map(ask)), grace])
    isOver = true
    // An open connection to a silent server would delay the end of a command.
    for (const client of asking) client.connection.stream.destroy()
    const chosen = chooseServer(candidates, this.wants, this.#last?.index)
    if (!chosen) {
      this.#failure = { error: this.#noServer(), untilMs: performance.now() + failureMs }
      throw this.#failure.error
    }
    const server = this.#servers[chosen.index]!
    this.#failure = undefined
    this.#adopt(server, chosen.state)
    return server
  }

  #noServer(): NoServer {
    const told = this.#servers.map(({ name, index }) => `${name} ${this.#reasons[index] ?? 'has not responded yet'}`)
    return new NoServer(`No host of the database is usable as ${this.wants}: ${told.join('; ')}.`)
  }

  /**
   * Asks a server for its state. Returns the reason if it cannot be used, as "it …". `asking` contains its connection
   * meanwhile.
   */
  async #examine(server: Server, asking: Set<ServerClient>): Promise<ServerState | string> {
    const client = new ServerClient(this, { connectionTimeoutMillis: patienceMs })
    asking.add(client)
    try {
      return await client.connectTo(server)
    } catch (error) {
      return reasonOf(error as Error, client)
    } finally {
      asking.delete(client)
      void client.end().catch(() => {})
    }
  }

  #adopt(server: Server, { system, timeline }: ServerState) {
    const isPromoted = this.#seen !== undefined && timeline !== undefined && timeline > this.#seen.timeline
    const isOther = this.#last !== undefined && server !== this.#last
    if (system !== undefined && timeline !== undefined && (!this.#seen || isPromoted)) this.#seen = { system, timeline }
    this.#last = server
    this.#current = server
    if (!isPromoted && !isOther) return
    this.generation = {}
    this.#report(`The connections to the database moved to ${server.name}${timeline ? `, timeline ${timeline}` : ''}.`)
  }
}

/** Runs `work` on a separate connection, with only the settings of the URL. */
export async function withConnection<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await new Servers(url, {}).connect()
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

const nameOf = ({ host, port }: ServerAddress): string =>
  host.startsWith('/') ? `${host}/.s.PGSQL.${port}` : `${host.includes(':') ? `[${host}]` : host}:${port}`

type Connected = (error: Error | null, client?: pg.Client) => void

type Connection = {
  on(event: 'parameterStatus', listener: (report: { parameterName: string; parameterValue: string }) => void): void
}

type State = { system: string; timeline: number | null; is_standby: boolean; is_read_only: boolean }

// pg_control_checkpoint() reports the new timeline only after the first checkpoint. The name of the WAL file shows it
// at once.
const readState = `
  select system_identifier::text as system, pg_is_in_recovery() as is_standby,
    current_setting('default_transaction_read_only')::boolean as is_read_only,
    case when not pg_is_in_recovery()
      then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end as timeline
  from pg_control_system()`

/**
 * Some PostgreSQL services lack the functions of {@link readState}, or do not permit them. Timelines are not compared
 * then.
 */
const unreadable = ['42501', '42883', '0A000']

/**
 * A connection to the server that {@link Servers} chooses when it connects. It is outdated once its server reports that
 * it may no longer be used.
 */
export class ServerClient extends pg.Client {
  generation: object
  readonly #servers: Servers
  readonly #reports = new Map<string, string>()
  /** The server, once the connection was admitted. */
  #server: Server | undefined

  constructor(servers: Servers, settings: pg.ClientConfig = {}) {
    super({ ...servers.settings, ...settings })
    this.#servers = servers
    this.generation = servers.generation
    // An error without a listener would end the process. The statements of the connection fail with the error, too.
    this.on('error', () => this.#servers.forget(this.#server))
  }

  override connect(): Promise<pg.Client>
  override connect(callback: Connected): void
  override connect(callback?: Connected): Promise<pg.Client> | undefined {
    const connecting = this.#servers.isChecked ? this.#connect() : super.connect()
    if (!callback) return connecting
    connecting.then(() => callback(null, this), callback)
    return undefined
  }

  async #connect(): Promise<this> {
    const server = await this.#servers.choose()
    try {
      this.generation = this.#servers.admit(server, await this.connectTo(server))
      this.#server = server
      return this
    } catch (error) {
      this.#servers.forget(server)
      void this.end().catch(() => {})
      throw error
    }
  }

  /** Connects to this server, and returns its state. */
  async connectTo({ host, port }: ServerAddress): Promise<ServerState> {
    Object.assign(this, { host, port })
    Object.assign((this as unknown as { connectionParameters: object }).connectionParameters, { host, port })
    const { connection } = this as unknown as { connection: Connection }
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      this.#reports.set(parameterName, parameterValue)
      if (this.#server && refusalOf(this.#reported(), this.#servers.wants)) this.#servers.retire(this)
    })
    await super.connect()
    const isReported = this.#reports.has('in_hot_standby')
    const reported = this.#reported()
    const { wants } = this.#servers
    if (isReported && (!isForWrites(wants) || refusalOf(reported, wants))) return reported
    return this.#readState(reported)
  }

  #reported(): ServerState {
    const isOn = (name: string) => this.#reports.get(name) === 'on'
    return { isStandby: isOn('in_hot_standby'), isReadOnly: isOn('default_transaction_read_only') }
  }

  async #readState(reported: ServerState): Promise<ServerState> {
    try {
      const { rows } = await this.query<State>({ text: readState, query_timeout: stateMs } as pg.QueryConfig)
      const { system, timeline, is_standby, is_read_only } = rows[0]!
      return { isStandby: is_standby, isReadOnly: is_read_only, system, timeline: timeline ?? undefined }
    } catch (error) {
      if (error instanceof pg.DatabaseError && unreadable.includes(error.code ?? '')) return reported
      throw error
    }
  }
}

const unansweredCodes = /^(E[A-Z_]+)$/

/** The reason why a server cannot be used, without the password. */
function reasonOf(error: Error & { code?: string }, client: pg.Client): string {
  const { user, database } = client
  const { code = '', message } = error
  if (unansweredCodes.test(code)) return `does not respond (${code})`
  if (/timeout/.test(message)) return `does not respond (${message})`
  const told = withoutPassword(message, client)
  if (code.startsWith('28') || message.startsWith('SASL')) return `rejects the login of "${user}" (${told})`
  if (code === '3D000') return `has no database "${database}"`
  return `cannot be used (${told})`
}

export const withoutPassword = (text: string, { password }: pg.Client): string =>
  password ? text.replaceAll(password, '…') : text
