import type { IncomingHttpHeaders } from 'node:http'
import type { DatabasePool } from '../db/db.ts'
import type { Config } from '../process/config.ts'
import type { Observer } from '../process/observer.ts'
import type { Signal } from '../process/signal.ts'

/** A request of another service, which has no token of the API: the row checks its signature. */
export type HookCall = {
  db: DatabasePool
  limits: Config['limits']
  observer: Observer
  /** The last segment of the path. */
  token: string
  headers: IncomingHttpHeaders
  /** The body as it was sent, because a signature is over its bytes. */
  body: Buffer
  request_id: string
  /** Aborts at the deadline. */
  signal: Signal
}

/** A path for the requests of other services, below or outside `/v1`, with one parameter at its end. */
export type HookRoute = {
  path: string
  bodyBytes: number
  /** Returns the data of the response. Throws a Fault. */
  handle(call: HookCall): Promise<unknown>
}
