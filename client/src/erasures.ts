import { EndpointGroup } from './endpoint-group.ts'
import { Listing, numberOf, type PageOptions, pageOf } from './listing.ts'
import type { CallOptions } from './options.ts'
import type { Erasure } from './wire.ts'

/** The page of a list of erasures: 50 by default, at most 500. */
export type ErasureListOptions = PageOptions & CallOptions

/** The list of the erasures. `client.people` erases. The scope is `people:erase`. */
export class ErasureEndpoints extends EndpointGroup {
  /**
   * Lists the erasures with their certificates, newest first.
   *
   * ```ts
   * const { items, has_more } = await client.erasures.list().page()
   * console.log(items.length, has_more) // 0 false
   * ```
   */
  list({ size, after, ...options }: ErasureListOptions = {}): Listing<Erasure> {
    const read = (before?: string) =>
      this.send('GET /v1/erasures', { query: { before: numberOf(before), limit: size } }, options)
    return new Listing(after => pageOf(read(after), ({ id }) => id), after)
  }
}
