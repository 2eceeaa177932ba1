import type { DatabasePool } from '../db/db.ts'
import type { Config } from '../process/config.ts'
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
