import type { EntityAddress } from './address.ts'
import { KithError } from './errors.ts'
import type { Call } from './options.ts'
import { type Answer, callOf } from './transport.ts'

/** The entities to read: by their external or by their internal identifiers. */
export type Named = { external_ids: readonly string[]; ids?: never } | { external_ids?: never; ids: readonly string[] }

/** The maximum number of entities in one request. */
const maxNamed = 1_000

type Reads<Entity> = {
  one(address: EntityAddress): Call<Entity>
  many(named: Named): Call<{ items: (Entity | null)[] }>
}

type Waiting<Entity> = { name: string; address: EntityAddress; settle(answer: Promise<Answer<Entity>>): void }

/** Joins the reads of one event-loop turn into one request for each kind of identifier. */
export class Loader<Entity> {
  readonly #reads: Reads<Entity>
  #waiting: Waiting<Entity>[] = []

  constructor(reads: Reads<Entity>) {
    this.#reads = reads
  }

  load(address: EntityAddress): Call<Entity> {
    if (this.#waiting.length === 0) setTimeout(() => this.#send(), 0)
    const name = typeof address === 'string' ? address : address.id
    return callOf(new Promise(resolve => this.#waiting.push({ name, address, settle: resolve })))
  }

  #send() {
    const waiting = this.#waiting
    this.#waiting = []
    const isExternal = ({ address }: Waiting<Entity>) => typeof address === 'string'
    for (const [byName, calls] of [
      [true, waiting.filter(isExternal)],
      [false, waiting.filter(call => !isExternal(call))],
    ] as const)
      for (let from = 0; from < calls.length; from += maxNamed) this.#join(byName, calls.slice(from, from + maxNamed))
  }

  #join(byName: boolean, calls: readonly Waiting<Entity>[]) {
    const [first] = calls
    if (calls.length === 1) return first!.settle(this.#reads.one(first!.address).withResponse())
    const names = calls.map(({ name }) => name)
    const read = this.#reads.many(byName ? { external_ids: names } : { ids: names }).withResponse()
    for (const [index, { address, settle }] of calls.entries())
      settle(
        read.then(
          ({ data, response }) => {
            const entity = data.items[index]
            // Only a separate read returns the error of an entity that does not exist.
            return entity ? { data: entity, response } : this.#reads.one(address).withResponse()
          },
          error => {
            // One invalid identifier makes the service refuse the whole request.
            if (error instanceof KithError && error.status === 400) return this.#reads.one(address).withResponse()
            throw error
          },
        ),
      )
  }
}
