import type { IncomingHttpHeaders } from 'node:http'
import type { Observer } from '../process/observer.ts'
import type { PageCall } from './page.ts'

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
