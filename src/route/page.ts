import type { IncomingHttpHeaders } from 'node:http'
import type { DatabasePool } from '../db/db.ts'
import type { Config } from '../process/config.ts'
import type { Observer } from '../process/observer.ts'
import type { Signal } from '../process/signal.ts'
import type { Refusal } from '../values/errors.ts'

/** A request for a page. The path names what it may see, so it needs no token of the API. */
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

/** A page in HTML. It may load nothing but the styles, which are all its `style` element contains, and submits forms to kith. */
export type HtmlPage = { status: number; html: string; style: string }

/** A page for people at a path outside `/v1`: what GET shows and what POST changes. */
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

/** A request of another service, which has no token of the API: the row checks its signature. */
export type HookCall = Pick<PageCall, 'db' | 'limits' | 'token' | 'request_id' | 'signal'> & {
  observer: Observer
  headers: IncomingHttpHeaders
  /** The body as it was sent, because a signature is over its bytes. */
  body: Buffer
}

/** A path for the requests of other services, below or outside `/v1`, with one parameter at its end. */
export type HookRoute = {
  path: string
  bodyBytes: number
  /** Returns the data of the response. Throws a Fault. */
  handle(call: HookCall): Promise<unknown>
}
