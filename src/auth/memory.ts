import type { Signal } from '../signal.ts'
import { ageOf } from './age.ts'
import { setBounded } from './bounded.ts'

/** Answers about keys that are remembered for a while, so that most requests ask nobody. */
export type Memory<V> = {
  /** What is known well enough to go by, at once. What is getting old is asked for anew behind the scenes. */
  peek(key: string): V | undefined
  /** The same, asking where it must. Throws what asking throws. */
  find(key: string, signal?: Signal): Promise<V | undefined>
}

type MemoryOptions = {
  now_ms: () => number
  /** From this age on an answer is asked for anew while it still serves, and from that one on before it does. */
  renew_ms: number
  forget_ms: number
  /** How long what was not there counts as not there. */
  unknown_ms: number
}

type Known<V> = { value: V; since_ms: number; renewing: boolean }

const most_known = 10_000
const most_unknown = 1_000

/** Remembers what `ask` answers; undefined is the answer for what does not exist. */
export function createMemory<V>(
  ask: (key: string, signal?: Signal) => Promise<V | undefined>,
  { now_ms, renew_ms, forget_ms, unknown_ms }: MemoryOptions,
): Memory<V> {
  const known = new Map<string, Known<V>>()
  const unknown_since_ms = new Map<string, number>()

  async function askFor(key: string, signal?: Signal): Promise<V | undefined> {
    const since_ms = now_ms()
    const value = await ask(key, signal)
    if (value !== undefined) setBounded(known, key, { value, since_ms, renewing: false }, most_known)
    else {
      known.delete(key)
      setBounded(unknown_since_ms, key, now_ms(), most_unknown)
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
    const age_ms = entry ? ageOf(entry.since_ms, now_ms()) : Number.POSITIVE_INFINITY
    if (!entry || age_ms >= forget_ms) return undefined
    if (age_ms >= renew_ms) renew(key, entry)
    return entry.value
  }

  return {
    peek,
    find: async (key, signal) => {
      const value = peek(key)
      if (value !== undefined || ageOf(unknown_since_ms.get(key) ?? Number.NEGATIVE_INFINITY, now_ms()) < unknown_ms)
        return value
      return askFor(key, signal)
    },
  }
}
