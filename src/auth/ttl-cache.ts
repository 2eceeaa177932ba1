import type { Signal } from '../signal.ts'
import { ageOf } from './age-of.ts'
import { setWithBound } from './bounded-map.ts'

/** Answers about keys that are remembered for a while, so that most requests ask nobody. */
export type TtlCache<V> = {
  /** What is known well enough to go by, at once. What is getting old is asked for anew behind the scenes. */
  peek(key: string): V | undefined
  /** The same, asking where it must. Throws what asking throws. */
  find(key: string, signal?: Signal): Promise<V | undefined>
}

type MemoryOptions = {
  nowMs: () => number
  /** From this age on an answer is asked for anew while it still serves, and from that one on before it does. */
  renewMs: number
  forgetMs: number
  /** How long what was not there counts as not there. */
  unknownMs: number
}

type Known<V> = { value: V; sinceMs: number; renewing: boolean }

const mostKnown = 10_000
const mostUnknown = 1_000

/** Remembers what `ask` answers; undefined is the answer for what does not exist. */
export function createTtlCache<V>(
  ask: (key: string, signal?: Signal) => Promise<V | undefined>,
  { nowMs, renewMs, forgetMs, unknownMs }: MemoryOptions,
): TtlCache<V> {
  const known = new Map<string, Known<V>>()
  const unknownSinceMs = new Map<string, number>()

  async function askFor(key: string, signal?: Signal): Promise<V | undefined> {
    const sinceMs = nowMs()
    const value = await ask(key, signal)
    if (value !== undefined) setWithBound(known, key, { value, sinceMs, renewing: false }, mostKnown)
    else {
      known.delete(key)
      setWithBound(unknownSinceMs, key, nowMs(), mostUnknown)
    }
    return value
  }

  function renew(key: string, entry: Known<V>) {
    if (entry.renewing) return
    entry.renewing = true
    askFor(key).catch(() => {
      entry.renewing = false
    })
  }

  function peek(key: string): V | undefined {
    const entry = known.get(key)
    const ageMs = entry ? ageOf(entry.sinceMs, nowMs()) : Number.POSITIVE_INFINITY
    if (!entry || ageMs >= forgetMs) return undefined
    if (ageMs >= renewMs) renew(key, entry)
    return entry.value
  }

  return {
    peek,
    find: async (key, signal) => {
      const value = peek(key)
      if (value !== undefined || ageOf(unknownSinceMs.get(key) ?? Number.NEGATIVE_INFINITY, nowMs()) < unknownMs)
        return value
      return askFor(key, signal)
    },
  }
}
