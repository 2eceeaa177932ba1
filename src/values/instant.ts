import { createValueRefusal, Fault } from './errors.ts'

/** A point in time: whole seconds since 1970 in UTC, and up to nine digits of the fraction without trailing zeros. */
export type Instant = { seconds: number; fraction: string }

/** Parses an RFC 3339 date and time, for which `isDateTime` is true, to the nanosecond. */
export function instantOf(text: string): Instant {
  const [, fraction = '', offset = ''] = /(?:\.(\d+))?(?:[Zz]|([+-]\d\d:\d\d))$/.exec(text) ?? []
  const local = Date.parse(`${text.slice(0, 10)}T${text.slice(11, 19)}Z`) / 1000
  const minutes = offset === '' ? 0 : Number(offset.slice(1, 3)) * 60 + Number(offset.slice(4, 6))
  const offsetMinutes = offset.startsWith('-') ? -minutes : minutes
  return { seconds: local - offsetMinutes * 60, fraction: fraction.replace(/0+$/, '') }
}

/** Formats seconds since 1970 for PostgreSQL's `numeric`. The fraction is added, also to negative seconds. */
export function numericOf({ seconds, fraction }: Instant): string {
  if (fraction === '') return String(seconds)
  if (seconds >= 0) return `${seconds}.${fraction}`
  const nanoseconds = BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'))
  const digits = String(-nanoseconds).padStart(10, '0')
  return `-${digits.slice(0, -9)}.${digits.slice(-9)}`
}

/**
 * The time in UTC to the microsecond, in the form that kith stores: three digits of the second, or six if the last
 * three are not zero. Takes a text for which `isDateTime` is true. Further digits are cut off.
 */
export function utcTime(text: string): string {
  const { seconds, fraction } = instantOf(text)
  const digits = fraction.slice(0, 6).padEnd(6, '0').replace(/000$/, '')
  return `${new Date(seconds * 1_000).toISOString().slice(0, -5)}.${digits}Z`
}

/** Converts a time of {@link utcTime} to a text that sorts in the order of time. */
export const sortableTime = (time: string): string => time.slice(0, -1).padEnd(26, '0')

/** Parses the `at` of a request as {@link utcTime}. Throws a Fault of 400 for a future time. */
export function pastTimeOf(at: string): string {
  const { seconds } = instantOf(at)
  const time = utcTime(at)
  if (Date.parse(time) > Date.now())
    throw new Fault(createValueRefusal('/at', 'The time is in the future. Give a past time.'))
  // PostgreSQL has no year 0, but an offset can lead to it.
  return seconds < 0 ? new Date(0).toISOString() : time
}
