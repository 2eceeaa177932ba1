import { isIPv6 } from 'node:net'
import { refuse } from '../values/errors.ts'
import { ageOf, setWithBound } from './ttl-cache.ts'

/** The maximum failed attempts of a client id from one address, and of an address in total, before they must wait. */
const maxOfClient = 10
const maxOfAddress = 100
const windowMs = 60_000
/**
 * A full map takes about 3 MB. An attacker with that many addresses evicts the counts of others, but still has to guess
 * 256 bits.
 */
const maxWindows = 20_000
/** No client id or address is longer. The limit keeps longer values from filling the memory. */
const maxKeyLength = 80

type Window = { failures: number; startedAtMs: number }

/**
 * Counts failed attempts to authenticate, in windows of a minute. An attempt is counted before it is checked, so that a
 * thousand concurrent attempts do not pass the limit of ten. The count is per client id and address, so that an
 * attacker cannot lock out a client at another address.
 */
export function createLoginThrottle(nowMs: () => number = Date.now) {
  const windows = new Map<string, Window>()

  const windowOf = (key: string): Window => {
    const current = windows.get(key)
    return current && ageOf(current.startedAtMs, nowMs()) < windowMs ? current : { failures: 0, startedAtMs: nowMs() }
  }
  const limits = (client_id: string, address: string) => {
    const network = networkOf(address).slice(0, maxKeyLength)
    return [
      { key: network, maxFailures: maxOfAddress },
      { key: `${network} ${client_id.slice(0, maxKeyLength)}`, maxFailures: maxOfClient },
    ]
  }

  const countersOf = (client_id: string, address: string) =>
    limits(client_id, address).map(limit => ({ ...limit, window: windowOf(limit.key) }))
  const waitOf = (counters: ReturnType<typeof countersOf>) => {
    const full = counters.filter(({ window, maxFailures }) => window.failures >= maxFailures)
    if (full.length === 0) return undefined
    const remainingMs = full.map(({ window }) => windowMs - ageOf(window.startedAtMs, nowMs()))
    return Math.ceil(Math.max(...remainingMs) / 1_000)
  }

  /** Counts an attempt as failed. After too many attempts, does not count it and returns the seconds to wait. */
  function countAttempt(client_id: string, address: string): number | undefined {
    const counters = countersOf(client_id, address)
    const waitSeconds = waitOf(counters)
    if (waitSeconds !== undefined) return waitSeconds
    for (const { key, window } of counters)
      setWithBound(windows, key, { ...window, failures: window.failures + 1 }, maxWindows)
    return undefined
  }

  /** Removes an attempt from the count, because it succeeded or could not be checked. */
  function uncountAttempt(client_id: string, address: string) {
    for (const { key } of limits(client_id, address)) {
      const window = windows.get(key)
      if (window) window.failures = Math.max(0, window.failures - 1)
    }
  }

  return {
    /**
     * The seconds to wait after too many failed attempts. Undefined if another attempt is allowed. Counts no attempt.
     */
    waitSeconds: (client_id: string, address: string) => waitOf(countersOf(client_id, address)),
    countAttempt,
    uncountAttempt,
    /**
     * Runs an attempt to authenticate. An undefined or false result counts as a failure. Throws a Fault of 429 after
     * too many failures.
     */
    attempt: async <Result>(client_id: string, address: string, run: () => Promise<Result>): Promise<Result> => {
      const waitSeconds = countAttempt(client_id, address)
      if (waitSeconds !== undefined) throwThrottled(waitSeconds)
      let isFailed = false
      try {
        const result = await run()
        isFailed = result === undefined || result === false
        return result
      } finally {
        if (!isFailed) uncountAttempt(client_id, address)
      }
    },
  }
}

/** Throws the Fault of 429 for an attempt that must wait. */
function throwThrottled(waitSeconds: number): never {
  return refuse('rate_limit_exceeded', `There were too many failed attempts. Retry after ${waitSeconds} s.`, {
    headers: { 'Retry-After': String(waitSeconds) },
  })
}

/**
 * The /64 network of an IPv6 address, because its owner usually has all 2^64 addresses. Other addresses are returned
 * unchanged.
 */
export function networkOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address
  const [head = '', tail] = address.split('%')[0]!.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const zeros = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length
  return [...groups(head), ...Array<string>(zeros).fill('0'), ...groups(tail ?? '')].slice(0, 4).join(':')
}
