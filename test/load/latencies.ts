const bucketsPerMs = 10
const mostMs = 60_000

/** Of a set of requests: how many, and how long they took from the moment they were due. */
export type Summary = { count: number; p50Ms: number; p99Ms: number; mostMs: number }

/** Counts durations by tenths of a millisecond: a million of them in little memory, and percentiles without sorting. */
export class Latencies {
  readonly #counts = new Uint32Array(mostMs * bucketsPerMs + 1)
  #count = 0
  #most_ms = 0

  add(ms: number): void {
    this.#counts[Math.min(this.#counts.length - 1, Math.max(0, Math.floor(ms * bucketsPerMs)))]! += 1
    this.#count += 1
    this.#most_ms = Math.max(this.#most_ms, ms)
  }

  /** Zeros where there was nothing. */
  summary(): Summary {
    return { count: this.#count, p50Ms: this.#at(0.5), p99Ms: this.#at(0.99), mostMs: round(this.#most_ms) }
  }

  #at(share: number): number {
    let left = Math.ceil(this.#count * share)
    if (left === 0) return 0
    let bucket = 0
    for (; left > 0; bucket += 1) left -= this.#counts[bucket]!
    return bucket / bucketsPerMs
  }
}

const round = (ms: number) => Math.round(ms * bucketsPerMs) / bucketsPerMs
