import { isIPv6 } from 'node:net'
import { ageOf } from './age-of.ts'
import { setWithBound } from './bounded-map.ts'

/** Failed attempts of one client id from one address, and of one address in all, before both have to wait. */
const mostOfClient = 10
const mostOfAddress = 100
const windowMs = 60_000
/** Some 3 MB when full. Whoever has that many addresses makes others be forgotten, and still guesses 256 bits. */
const mostRemembered = 20_000
/** No client id or address has more characters: what claims to be one must not fill the memory. */
const longest = 80

export type LoginThrottle = {
  /** Counts an attempt as failed. How many seconds it must wait instead, where there were too many: then it is not counted. */
  begin(client_id: string, address: string): number | undefined
  /** It was not a failure after all: it was right, or could not be decided. */
  takeBack(client_id: string, address: string): void
}

type Window = { failures: number; sinceMs: number }

/**
 * Counts failed attempts to authenticate, in windows of a minute. An attempt counts before it is decided, so that a
 * thousand at once are no more than ten; by the pair, so that nobody shuts a client out from elsewhere.
 */
export function createLoginThrottle(nowMs: () => number = Date.now): LoginThrottle {
  const windows = new Map<string, Window>()

  const windowOf = (key: string): Window => {
    const found = windows.get(key)
    return found && ageOf(found.sinceMs, nowMs()) < windowMs ? found : { failures: 0, sinceMs: nowMs() }
  }
  const limits = (client_id: string, address: string) => {
    const place = placeOf(address).slice(0, longest)
    return [
      { key: place, most: mostOfAddress },
      { key: `${place} ${client_id.slice(0, longest)}`, most: mostOfClient },
    ]
  }

  return {
    begin: (client_id, address) => {
      const found = limits(client_id, address).map(limit => ({ ...limit, window: windowOf(limit.key) }))
      const full = found.filter(({ window, most }) => window.failures >= most)
      if (full.length > 0) {
        const leftMs = full.map(({ window }) => windowMs - ageOf(window.sinceMs, nowMs()))
        return Math.ceil(Math.max(...leftMs) / 1_000)
      }
      for (const { key, window } of found)
        setWithBound(windows, key, { ...window, failures: window.failures + 1 }, mostRemembered)
      return undefined
    },
    takeBack: (client_id, address) => {
      for (const { key } of limits(client_id, address)) {
        const window = windows.get(key)
        if (window) window.failures = Math.max(0, window.failures - 1)
      }
    },
  }
}

/** Who has one IPv6 address has 2^64 of them: the network stands for all. */
function placeOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail] = address.split('%')[0]!.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const zeros = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length
  return [...groups(head), ...Array<string>(zeros).fill('0'), ...groups(tail ?? '')].slice(0, 4).join(':')
}
