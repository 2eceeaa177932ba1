import type { Database } from '../db.ts'
import { readStandbySql } from './sql.ts'

/**
 * The condition of a server for reads: usable (`ready`); not responding (`away`); too far behind its primary; or
 * without the tables of this version of kith.
 */
type StandbyCondition = 'ready' | 'away' | 'behind' | 'tables'

/** The lag is undefined while it is unknown, and 0 for a primary. */
export type StandbyState = {
  condition: StandbyCondition
  isPrimary: boolean
  lagSeconds: number | undefined
  lagBytes: number | undefined
}

export type StandbyWatch = {
  /** The last observed state. */
  readonly state: StandbyState
  /** Checks the server. Concurrent calls share a check. Never rejects. */
  look(): Promise<StandbyState>
}

type Row = {
  is_standby: boolean
  received: number | null
  replayed: number | null
  is_receiving: boolean
  replayed_age: number | null
  migrations: number
}

type WatchOptions = {
  maxLagSeconds: number
  /** The number of migrations that this version of kith needs. */
  migrations: number
  /** Called when the condition changes, or when a primary replaces a standby. */
  onChange: (state: StandbyState) => void
}

/** A server that does not answer a check within this time is away, even if the statement stays stuck for longer. */
const timeoutMs = 1_000

const away: StandbyState = { condition: 'away', isPrimary: false, lagSeconds: undefined, lagBytes: undefined }

/** Watches a server that this process reads from. */
export function watchStandby(db: Database, { maxLagSeconds, migrations, onChange }: WatchOptions): StandbyWatch {
  const meter = new ReplayLagMeter()
  let state = away
  let looking: Promise<StandbyState> | undefined
  let reported: string | undefined

  async function read(): Promise<StandbyState> {
    const [row] = await db.query<Row>(readStandbySql, [], AbortSignal.timeout(timeoutMs))
    return stateOf(row!)
  }

  function stateOf(row: Row): StandbyState {
    const { seconds, bytes } = row.is_standby
      ? meter.observe({
          nowMs: performance.now(),
          received: row.received,
          replayed: row.replayed ?? 0,
          isReceiving: row.is_receiving,
          replayedAgeMs: row.replayed_age === null ? null : row.replayed_age * 1_000,
        })
      : { seconds: 0, bytes: 0 }
    const isBehind = seconds === undefined || seconds > maxLagSeconds
    const condition = row.migrations < migrations ? 'tables' : isBehind ? 'behind' : 'ready'
    return { condition, isPrimary: !row.is_standby, lagSeconds: seconds, lagBytes: bytes }
  }

  async function look(): Promise<StandbyState> {
    const late = Promise.withResolvers<StandbyState>()
    const timer = setTimeout(() => late.resolve(away), timeoutMs)
    state = await Promise.race([read().catch(() => away), late.promise])
    clearTimeout(timer)
    const summary = `${state.condition} ${state.isPrimary}`
    if (summary !== reported) onChange(state)
    reported = summary
    return state
  }

  return {
    get state() {
      return state
    },
    look: () => {
      looking ??= look().finally(() => {
        looking = undefined
      })
      return looking
    },
  }
}

/** A sample of a standby: positions in the write-ahead log in bytes, and times in milliseconds. */
export type ReplaySample = {
  nowMs: number
  /** Null if the standby has not streamed since its start. */
  received: number | null
  replayed: number
  /** Whether the standby is connected to its primary. */
  isReceiving: boolean
  /** The age of the newest replayed transaction. Null if there was none since the start. */
  replayedAgeMs: number | null
}

/** `seconds` is undefined while the lag is unknown. */
export type ReplayLag = { seconds: number | undefined; bytes: number | undefined }

/** With one sample each second, this is more than an hour. Beyond it, every second position is dropped. */
const maxPositions = 4_096

/**
 * Computes the lag of a standby from samples. The age of the last replayed transaction alone would show an idle primary
 * as lag. So this records when each position of the log was first received. The standby lags since the first position
 * that it has not replayed. A standby without a connection lags since its connection was last seen.
 */
export class ReplayLagMeter {
  #positions: { received: number; atMs: number }[] = []
  #lastReceived = 0
  #attachedAtMs: number | undefined
  #isFirst = true

  observe({ nowMs, received, replayed, isReceiving, replayedAgeMs }: ReplaySample): ReplayLag {
    if (received !== null && received > Math.max(this.#lastReceived, replayed)) {
      // The arrival of the first position was not observed. It was after the last replayed transaction.
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
