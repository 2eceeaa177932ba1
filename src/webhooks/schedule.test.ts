import { describe, expect, it } from 'vitest'
import { disablement, judge, retryWaitsMs } from './schedule.ts'

const nowMs = Date.parse('2027-01-15T08:00:00Z')
const hourMs = 3_600_000
const failure = { status: 500, durationMs: 1 }
const waitOf = (attempts: number, random: number, outcome: object = failure) => {
  const verdict = judge({ durationMs: 1, ...outcome }, attempts, nowMs, random)
  return 'nextAttemptMs' in verdict ? verdict.nextAttemptMs - nowMs : verdict.status
}

describe('an attempt', () => {
  it('with a status of 200 to 299 delivers', () => {
    for (const status of [200, 204, 299]) expect(waitOf(1, 0.5, { status })).toBe('delivered')
    for (const status of [199, 300, 302, 404, 500]) expect(waitOf(1, 0.5, { status })).toBe(5_000)
    expect(waitOf(1, 0.5, { error: 'no response' })).toBe(5_000)
  })

  it('that fails is retried after 5 s, 5 and 30 min, 2, 5, 10, 14, 20 and 24 h, and then given up', () => {
    const hours = [2, 5, 10, 14, 20, 24].map(hour => hour * hourMs)
    expect(retryWaitsMs.map((_, index) => waitOf(index + 1, 0.5))).toEqual([5_000, 300_000, 1_800_000, ...hours])
    expect(waitOf(10, 0.5)).toBe('failed')
  })

  it('is retried up to 10 % earlier or later', () => {
    expect([waitOf(4, 0), waitOf(4, 1)]).toEqual([6_480_000, 7_920_000])
  })

  it('is retried no earlier than Retry-After, up to a day', () => {
    expect(waitOf(1, 0.5, { status: 503, retryAfterSeconds: 60 })).toBe(60_000)
    expect(waitOf(4, 0.5, { status: 503, retryAfterSeconds: 60 })).toBe(2 * hourMs)
    expect(waitOf(1, 0.5, { status: 503, retryAfterSeconds: 999_999_999 })).toBe(24 * hourMs)
  })

  it('disables the webhook by 410 at once, or after five days without a success', () => {
    expect(disablement({ status: 410, durationMs: 1 }, nowMs, nowMs)).toBe('gone')
    expect(disablement(failure, nowMs - 120 * hourMs + 1, nowMs)).toBeUndefined()
    expect(disablement(failure, nowMs - 120 * hourMs, nowMs)).toBe('failing')
  })
})
