import type { ImportItem, Refusal } from './item.ts'

/**
 * The limits of unacknowledged items: of their number, and of their memory in bytes, about twice their size in the
 * file.
 */
export type Limits = { maxItems: number; maxBytes: number }

/**
 * The items taken from the file and not yet acknowledged, in the order of the file. They are sent again after a failed
 * request. The items with a body are the lines of the request, in this order.
 */
export class UnacknowledgedItems {
  #items: ImportItem[] = []
  #bytes = 0
  #sent = new Map<number, ImportItem>()
  #lines = 0
  #acknowledged = 0
  #acknowledgement = Promise.withResolvers<void>()
  readonly #limits: Limits

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** The items to send again. */
  get sent(): ImportItem[] {
    return this.#items.filter(({ body }) => body !== null)
  }

  /** Starts a new request, whose lines are counted from 1. Returns the items to send again. */
  restart(): ImportItem[] {
    this.#sent.clear()
    ;[this.#lines, this.#acknowledged] = [0, 0]
    // The service decides again about refused items.
    for (const item of this.sent) delete item.refusal
    return this.sent
  }

  /** Adds an item. An item without a body waits here until those before it are acknowledged. */
  add(item: ImportItem): void {
    this.#items.push(item)
    this.#bytes += bytesOf(item)
  }

  /** Records the item as the next line of the request. */
  send(item: ImportItem): void {
    this.#sent.set(++this.#lines, item)
  }

  /** Records the refusal of a line of the request. */
  refuse(line: number, refusal: Refusal): void {
    const item = this.#sent.get(line)
    if (item) item.refusal = refusal
  }

  /** Acknowledges the first `lines` lines of the request. Removes and returns the finished items, in order. */
  acknowledge(lines: number): ImportItem[] {
    let count = 0
    for (const item of this.#items) {
      if (item.body !== null && this.#acknowledged >= Math.min(lines, this.#lines)) break
      if (item.body !== null) this.#sent.delete(++this.#acknowledged)
      this.#bytes -= bytesOf(item)
      count++
    }
    if (count === 0) return []
    this.#acknowledgement.resolve()
    this.#acknowledgement = Promise.withResolvers()
    return this.#items.splice(0, count)
  }

  /** Removes and returns all items. */
  takeAll(): ImportItem[] {
    this.#bytes = 0
    return this.#items.splice(0)
  }

  get isEmpty(): boolean {
    return this.#items.length === 0
  }

  get isFull(): boolean {
    return this.#bytes >= this.#limits.maxBytes || this.#items.length >= this.#limits.maxItems
  }

  /** Resolves at the next acknowledgement. */
  nextAcknowledgement(): Promise<void> {
    return this.#acknowledgement.promise
  }
}

/** The approximate memory of an item: its body, and the original of about the same size. */
const bytesOf = ({ body, original }: ImportItem) =>
  2 * (body?.length ?? 0) + (original instanceof Uint8Array ? original.length : 0)
