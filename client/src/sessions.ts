import { EndpointGroup } from './endpoint-group.ts'
import { type Listing, listingOfAll } from './listing.ts'
import type { Call, CallOptions } from './options.ts'
import type { ConsoleSession } from './wire.ts'

/** The sessions of the console. The scopes are `access:read` and `access:write`. */
export class SessionEndpoints extends EndpointGroup {
  /**
   * Lists the sessions that have not ended, newest first.
   *
   * ```ts
   * const [newest] = await client.sessions.list().all()
   * console.log(newest?.name, newest?.method) // operator code
   * ```
   */
  list(options?: CallOptions): Listing<ConsoleSession> {
    return listingOfAll(() => this.send('GET /v1/sessions', {}, options))
  }

  /**
   * Ends a session. Its cookie is refused within ten seconds.
   *
   * ```ts
   * const [newest] = await client.sessions.list().all()
   * if (newest) console.log(await client.sessions.revoke(newest.id)) // true
   * ```
   */
  revoke(id: string, options?: CallOptions): Call<true> {
    return this.send('DELETE /v1/sessions/{session_id}', { params: { session_id: id } }, options)
  }
}
