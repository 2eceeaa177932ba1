import type { Item, Refusal } from './item.ts'

/** What may be under way: enough for some seconds of a fast service, and little memory. */
const mostBytes = 16_777_216
const mostItems = 50_000

/**
 * The items that have been drawn from the file and are not known to be done, in the order of the file: what a request
 * that broke leaves to be sent again. Those with a body are the lines of the request, one after the other.
 */
export class UnacknowledgedItems {
  #items: Item[] = []
  #bytes = 0
  #sent = new Map<number, Item>()
  #lines = 0
  #acknowledged = 0
  #roomy = Promise.withResolvers<void>()

  /** A new request begins, whose lines are counted from 1. Gives what is to be sent again. */
  restart(): Item[] {
    this.#sent.clear()
    ;[this.#lines, this.#acknowledged] = [0, 0]
    const again = this.#items.filter(item => item.body !== null)
    // What was refused is refused again, or was put right meanwhile.
    for (const item of again) delete item.refusal
    return again
  }

  /** An item was drawn; without a body it waits here for those before it. */
  add(item: Item): void {
    this.#items.push(item)
    this.#bytes += bytesOf(item)
  }

  /** The item is the request's next line. */
  send(item: Item): void {
    this.#sent.set(++this.#lines, item)
  }

  refuse(line: number, refusal: Refusal): void {
    const item = this.#sent.get(line)
    if (item) item.refusal = refusal
  }

  /** The request's first lines are done, so many of them. Gives back what has become done by that, in order. */
  acknowledge(lines: number): Item[] {
    let count = 0
    for (const item of this.#items) {
      if (item.body !== null && this.#acknowledged >= Math.min(lines, this.#lines)) break
      if (item.body !== null) this.#sent.delete(++this.#acknowledged)
      this.#bytes -= bytesOf(item)
      count++
    }
    if (count === 0) return []
    this.#roomy.resolve()
    this.#roomy = Promise.withResolvers()
    return this.#items.splice(0, count)
  }

  get isFull(): boolean {
    return this.#bytes >= mostBytes || this.#items.length >= mostItems
  }

  /** Until something more is done. */
  room(): Promise<void> {
    return this.#roomy.promise
  }
}

/** The body, and about as much for what it was made of. */
const bytesOf = ({ body, original }: Item) =>
  2 * (body?.length ?? 0) + (original instanceof Buffer ? original.length : 0)
