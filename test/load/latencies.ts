const bucketsPerMs = 10
const maxTrackedMs = 60_000

/** The number of requests and their latencies, counted from the time at which each was due. */
export type Summary = { count: number; p50Ms: number; p99Ms: number; maxMs: number }

/** A histogram with buckets of 0.1 ms up to 60 s. It needs little memory for a million durations, and no sorting for percentiles. */
export class Latencies {
  readonly #counts = new Uint32Array(maxTrackedMs * bucketsPerMs + 1)
  #count = 0
  #maxMs = 0

  add(ms: number): void {
    this.#counts[Math.min(this.#counts.length - 1, Math.max(0, Math.floor(ms * bucketsPerMs)))]! += 1
    this.#count += 1
    this.#maxMs = Math.max(this.#maxMs, ms)
  }

  /** Returns zeros if there were no requests. */
  summary(): Summary {
    return { count: this.#count, p50Ms: this.#at(0.5), p99Ms: this.#at(0.99), maxMs: round(this.#maxMs) }
  }

  #at(share: number): number {
    let remaining = Math.ceil(this.#count * share)
    if (remaining === 0) return 0
    let bucket = 0
    for (; remaining > 0; bucket += 1) remaining -= this.#counts[bucket]!
    return bucket / bucketsPerMs
  }
}

const round = (ms: number) => Math.round(ms * bucketsPerMs) / bucketsPerMs
