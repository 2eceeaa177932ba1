import type { Signal } from '../process/signal.ts'

/**
 * The milliseconds between `sinceMs` and `nowMs`. If the clock was set back and `sinceMs` is in the future, the age is
 * infinite, so that the caller treats the value as expired.
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
  /** The cached value, synchronously, or undefined if there is none. An old entry is reloaded in the background. */
  peek(key: string): V | undefined
  /** The cached value, or else the loaded one. Undefined if the key does not exist. Throws the error of `load`. */
  find(key: string, signal?: Signal): Promise<V | undefined>
  /** Removes the values that `isGone` selects. A reload in progress may store one again. */
  removeWhere(isGone: (value: V) => boolean): void
}

/**
 * Loads the values of keys with one statement. While any of the entries is in use, the old ones are reloaded together.
 * Without it, a service with many organizations would load an entry for nearly every request.
 */
type LoadMany<V> = (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>

type Entry<V> = { value: V; loadedAtMs: number; usedAtMs: number; isRefreshing: boolean }

/** An entry of this age is reloaded in the background and still served. */
const refreshMs = 5_000
/**
 * An entry of this age is no longer served. A token is accepted for at most this long after its organization, client or
 * session has ended.
 */
const maxAgeMs = 10_000
/** The time for which the cache remembers that a key does not exist. */
const notFoundMs = 1_000
const maxEntries = { alone: 10_000, together: 50_000 }
const maxNotFound = 1_000
/** The minimum interval between common reloads of entries. */
const reloadMs = 1_000
/** An entry without a request in this time is not reloaded. */
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
      // The entries are then loaded one by one when they are no longer served.
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
