import type { Signal } from '../signal.ts'
import { ageOf } from './age-of.ts'
import { setWithBound } from './bounded-map.ts'

/** A cache whose entries expire, so that most requests need no query. */
export type TtlCache<V> = {
  /** The cached value, at once; undefined if there is none. An old entry is reloaded in the background. */
  peek(key: string): V | undefined
  /** The cached value, or else the loaded one; undefined if the key does not exist. Throws what `load` throws. */
  find(key: string, signal?: Signal): Promise<V | undefined>
  /** Removes the values that `isGone` selects. A reload that is under way may store one again. */
  removeWhere(isGone: (value: V) => boolean): void
}

type TtlCacheOptions = {
  nowMs: () => number
  /** An entry of this age is reloaded in the background and still served. */
  refreshMs: number
  /** An entry of this age is no longer served. */
  maxAgeMs: number
  /** How long the cache remembers that a key does not exist. */
  notFoundMs: number
}

type Entry<V> = { value: V; loadedAtMs: number; isRefreshing: boolean }

const maxEntries = 10_000
const maxNotFound = 1_000

/** Caches the values that `load` returns. `load` returns undefined for a key that does not exist. */
export function createTtlCache<V>(
  load: (key: string, signal?: Signal) => Promise<V | undefined>,
  { nowMs, refreshMs, maxAgeMs, notFoundMs }: TtlCacheOptions,
): TtlCache<V> {
  const entries = new Map<string, Entry<V>>()
  const notFoundAtMs = new Map<string, number>()

  async function loadEntry(key: string, signal?: Signal): Promise<V | undefined> {
    const loadedAtMs = nowMs()
    const value = await load(key, signal)
    if (value !== undefined) setWithBound(entries, key, { value, loadedAtMs, isRefreshing: false }, maxEntries)
    else {
      entries.delete(key)
      setWithBound(notFoundAtMs, key, nowMs(), maxNotFound)
    }
    return value
  }

  function refresh(key: string, entry: Entry<V>) {
    if (entry.isRefreshing) return
    entry.isRefreshing = true
    loadEntry(key).catch(() => {
      entry.isRefreshing = false
    })
  }

  function peek(key: string): V | undefined {
    const entry = entries.get(key)
    const ageMs = entry ? ageOf(entry.loadedAtMs, nowMs()) : Number.POSITIVE_INFINITY
    if (!entry || ageMs >= maxAgeMs) return undefined
    if (ageMs >= refreshMs) refresh(key, entry)
    return entry.value
  }

  return {
    peek,
    find: async (key, signal) => {
      const value = peek(key)
      if (value !== undefined || ageOf(notFoundAtMs.get(key) ?? Number.NEGATIVE_INFINITY, nowMs()) < notFoundMs)
        return value
      return loadEntry(key, signal)
    },
    removeWhere: isGone => {
      for (const [key, { value }] of entries) if (isGone(value)) entries.delete(key)
    },
  }
}
