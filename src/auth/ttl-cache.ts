import type { Signal } from '../process/signal.ts'

/**
 * The milliseconds between `sinceMs` and `nowMs`. The age is infinite if `sinceMs` lies in the future, because the
 * clock was set back: the caller then treats the value as expired.
 */
export function ageOf(sinceMs: number, nowMs: number): number {
  return nowMs < sinceMs ? Number.POSITIVE_INFINITY : nowMs - sinceMs
}

/** Sets an entry as the newest one, and removes the oldest entry if the map then holds more than `maxSize`. */
export function setWithBound<K, V>(map: Map<K, V>, key: K, value: V, maxSize: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > maxSize) map.delete(map.keys().next().value as K)
}

/** A cache whose entries expire, so that most requests need no query. */
export type TtlCache<V> = {
  /** The cached value, at once; undefined if there is none. An old entry is reloaded in the background. */
  peek(key: string): V | undefined
  /** The cached value, or else the loaded one; undefined if the key does not exist. Throws what `load` throws. */
  find(key: string, signal?: Signal): Promise<V | undefined>
  /** Removes the values that `isGone` selects. A reload that is under way may store one again. */
  removeWhere(isGone: (value: V) => boolean): void
}

/**
 * Loads the values of keys by one statement. With it, old entries are reloaded together while any of them is asked for. Without it, a service
 * of many organizations would load one for nearly every request.
 */
type LoadMany<V> = (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>

type Entry<V> = { value: V; loadedAtMs: number; usedAtMs: number; isRefreshing: boolean }

/** An entry of this age is reloaded in the background and still served. */
const refreshMs = 5_000
/** An entry of this age is no longer served: a token is accepted for at most so long after its organization, client or session has ended. */
const maxAgeMs = 10_000
/** How long the cache remembers that a key does not exist. */
const notFoundMs = 1_000
const maxEntries = { alone: 10_000, together: 50_000 }
const maxNotFound = 1_000
/** Entries are reloaded together at most this often. */
const reloadMs = 1_000
/** An entry that nobody has asked for in this time is not reloaded. */
const maxUnusedMs = 600_000

/** Caches the values that `load` returns. `load` returns undefined for a key that does not exist. */
export function createTtlCache<V>(
  nowMs: () => number,
  load: (key: string, signal?: Signal) => Promise<V | undefined>,
  loadMany?: LoadMany<V>,
): TtlCache<V> {
  const entries = new Map<string, Entry<V>>()
  let reloadedAtMs = Number.NEGATIVE_INFINITY
  let isReloading = false
  const notFoundAtMs = new Map<string, number>()

  async function loadEntry(key: string, signal?: Signal): Promise<V | undefined> {
    const loadedAtMs = nowMs()
    const value = await load(key, signal)
    if (value !== undefined)
      setWithBound(
        entries,
        key,
        { value, loadedAtMs, usedAtMs: loadedAtMs, isRefreshing: false },
        loadMany ? maxEntries.together : maxEntries.alone,
      )
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

  async function reloadOld(load: LoadMany<V>) {
    const startedAtMs = nowMs()
    if (isReloading || ageOf(reloadedAtMs, startedAtMs) < reloadMs) return
    isReloading = true
    reloadedAtMs = startedAtMs
    const isOld = ({ loadedAtMs, usedAtMs }: Entry<V>) =>
      ageOf(loadedAtMs, startedAtMs) >= refreshMs && ageOf(usedAtMs, startedAtMs) < maxUnusedMs
    const old = [...entries].filter(([, entry]) => isOld(entry))
    try {
      const values = await load(old.map(([key]) => key))
      for (const [key, entry] of old) {
        const value = values.get(key)
        if (value === undefined && entries.get(key) === entry) entries.delete(key)
        else if (value !== undefined) Object.assign(entry, { value, loadedAtMs: startedAtMs })
      }
    } catch {
      // The entries are loaded one by one when they are no longer served.
    } finally {
      isReloading = false
    }
  }

  function peek(key: string): V | undefined {
    const entry = entries.get(key)
    if (!entry) return undefined
    const now = nowMs()
    const ageMs = ageOf(entry.loadedAtMs, now)
    entry.usedAtMs = now
    if (ageMs >= refreshMs && loadMany) void reloadOld(loadMany)
    else if (ageMs >= refreshMs && ageMs < maxAgeMs) refresh(key, entry)
    return ageMs >= maxAgeMs ? undefined : entry.value
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
