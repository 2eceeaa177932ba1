/** A number that is counted up, and read when somebody asks. */
export type Count = { value: number }

/** How often which size was seen. `bounds` are in ascending order; what exceeds the last is counted behind it. */
export class Distribution {
  readonly bounds: readonly number[]
  /** One more than there are bounds; each counts its own, not those below. */
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
