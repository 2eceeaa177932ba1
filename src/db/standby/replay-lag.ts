/** A look at a standby: positions in the write-ahead log in bytes, and times in milliseconds. */
export type ReplaySample = {
  nowMs: number
  /** Null if the standby has not streamed since its start. */
  received: number | null
  replayed: number
  /** Whether the standby is connected to its primary. */
  isReceiving: boolean
  /** The age of the newest transaction that was replayed; null if there was none since the start. */
  replayedAgeMs: number | null
}

/** `seconds` is undefined while nothing tells how far the standby is behind. */
export type ReplayLag = { seconds: number | undefined; bytes: number | undefined }

/** With a look each second, this is more than an hour. Beyond it, every second position is forgotten. */
const maxPositions = 4_096

/**
 * Computes how far a standby is behind from looks at it. The age of the last replayed transaction alone would show an idle primary as
 * lag. So this remembers when each position of the log was first seen as received: the standby is behind since the first one that it has not
 * replayed. A standby without a connection is behind since it was last seen with one.
 */
export class ReplayLagMeter {
  #positions: { received: number; atMs: number }[] = []
  #lastReceived = 0
  #attachedAtMs: number | undefined
  #isFirst = true

  observe({ nowMs, received, replayed, isReceiving, replayedAgeMs }: ReplaySample): ReplayLag {
    if (received !== null && received > Math.max(this.#lastReceived, replayed)) {
      // The arrival of the first position was not seen. It was after the last transaction that was replayed.
      this.#positions.push({ received, atMs: this.#isFirst ? nowMs - (replayedAgeMs ?? 0) : nowMs })
      if (this.#positions.length > maxPositions) this.#positions = this.#positions.filter((_, index) => index % 2 === 0)
    }
    this.#lastReceived = received ?? this.#lastReceived
    this.#isFirst = false
    const next = this.#positions.findIndex(position => position.received > replayed)
    this.#positions.splice(0, next === -1 ? this.#positions.length : next)
    if (isReceiving) this.#attachedAtMs = nowMs
    const behindSince = this.#positions[0]?.atMs ?? nowMs
    const known = [this.#attachedAtMs, replayedAgeMs === null ? undefined : nowMs - replayedAgeMs]
    const attachedAt = Math.max(...known.map(atMs => atMs ?? Number.NEGATIVE_INFINITY))
    const sinceMs = Math.min(behindSince, attachedAt)
    return {
      seconds: Number.isFinite(sinceMs) ? Math.max(0, nowMs - sinceMs) / 1_000 : undefined,
      bytes: received === null ? undefined : Math.max(0, received - replayed),
    }
  }
}
