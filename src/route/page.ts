import type { IncomingHttpHeaders } from 'node:http'
import type { DatabasePool } from '../db/db.ts'
import type { Config } from '../process/config.ts'
import type { Observer } from '../process/observer.ts'
import type { Signal } from '../process/signal.ts'
import type { Refusal } from '../values/errors.ts'

/** A request for a page. The token in the path authorizes it, so it needs no token of the API. */
export type PageCall = {
  db: DatabasePool
  limits: Config['limits']
  /** The last segment of the path. */
  token: string
  /** The body of a POST. Undefined if it is empty. */
  body: Buffer | undefined
  contentType: string | undefined
  /** The address of the client; see `clientAddress`. */
  address: string
  userAgent: string | undefined
  acceptLanguage: string | undefined
  request_id: string
  /** Aborts at the deadline. */
  signal: Signal
}

/**
 * An HTML page. It may load only the styles, which are the whole content of its `style` element, and it submits forms
 * to kith.
 */
export type HtmlPage = { status: number; html: string; style: string }

/** A page for people at a path outside `/v1`, with a handler for GET and one for POST. */
export type PageRoute = {
  /** A path with one parameter at its end. */
  path: string
  /** The limit of the body of a POST in bytes. */
  bodyBytes: number
  show(call: PageCall): Promise<HtmlPage>
  submit(call: PageCall): Promise<HtmlPage>
  /** The page for a request that is refused or fails. */
  refuse(call: PageCall, refusal: Refusal): HtmlPage
}

/** A request of another service without a token of the API. The row verifies its signature. */
export type HookCall = Pick<PageCall, 'db' | 'limits' | 'token' | 'request_id' | 'signal'> & {
  observer: Observer
  headers: IncomingHttpHeaders
  /** The body as sent, because the signature covers its bytes. */
  body: Buffer
}

/** A path for requests of other services, with one parameter at its end. It may be below or outside `/v1`. */
export type HookRoute = {
  path: string
  bodyBytes: number
  /** Returns the data of the response. Throws a Fault. */
  handle(call: HookCall): Promise<unknown>
}
