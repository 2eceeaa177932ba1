/** A counter, read at each scrape. */
export type Counter = { value: number }

/** A histogram of sizes. `bounds` are the ascending upper bounds of its buckets. Sizes above the last bound count in one more bucket. */
export class Histogram {
  readonly bounds: readonly number[]
  /** The count of each bucket alone, without the lower ones. There is one more bucket than bounds. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  observe(size: number): void {
    const { bounds } = this
    let index = 0
    while (index < bounds.length && size > bounds[index]!) index += 1
    this.counts[index]! += 1
    this.sum += size
  }
}
