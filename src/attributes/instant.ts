/** A moment: whole seconds since 1970 in UTC, and the digits of the second's fraction without trailing zeros, at most nine. */
export type Instant = { seconds: number; fraction: string }

/** The moment of a date and time of RFC 3339 (`isDateTime` holds of it), to the nanosecond; further digits are cut off. */
export function instantOf(text: string): Instant {
  const [, fraction = '', offset = ''] = /(?:\.(\d+))?(?:[Zz]|([+-]\d\d:\d\d))$/.exec(text) ?? []
  const local = Date.parse(`${text.slice(0, 10)}T${text.slice(11, 19)}Z`) / 1000
  const minutes = offset === '' ? 0 : Number(offset.slice(1, 3)) * 60 + Number(offset.slice(4, 6))
  const ahead = offset.startsWith('-') ? -minutes : minutes
  return { seconds: local - ahead * 60, fraction: fraction.slice(0, 9).replace(/0+$/, '') }
}

/** Seconds since 1970 as PostgreSQL's `numeric` reads them. The fraction counts forward before 1970 too. */
export function numericOf({ seconds, fraction }: Instant): string {
  if (fraction === '') return String(seconds)
  if (seconds >= 0) return `${seconds}.${fraction}`
  const nanoseconds = BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'))
  const digits = String(-nanoseconds).padStart(10, '0')
  return `-${digits.slice(0, -9)}.${digits.slice(-9)}`
}
