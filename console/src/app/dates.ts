export type Instant = string | number | Date

/**
 * The date of a moment, or of a day at midnight UTC. An offset or a time zone can lead to years of five digits, which
 * JavaScript reads with a sign. Other texts, which may be older than the declaration of the attribute, have an invalid
 * date.
 */
export function dateOf(instant: Instant): Date {
  if (typeof instant !== 'string') return new Date(instant)
  if (!/^\+?\d{4,}-\d\d-\d\d(T|$)/i.test(instant)) return new Date(Number.NaN)
  return new Date(instant.replace(/^(?=\d{5}-)/, '+0').toUpperCase())
}

/** A formatted moment or day. Any other text is unchanged. */
export function formatTime(format: Intl.DateTimeFormat, instant: Instant): string {
  const date = dateOf(instant)
  return Number.isNaN(date.getTime()) ? String(instant) : format.format(date)
}
