export type Instant = string | number | Date

/**
 * The date of a moment, or of a day at midnight UTC. An offset or a time zone leads to years of five digits, which JavaScript reads with a
 * sign. A text that is neither, such as one that was stored before its attribute was declared, has an invalid date.
 */
export function dateOf(instant: Instant): Date {
  if (typeof instant !== 'string') return new Date(instant)
  if (!/^\+?\d{4,}-\d\d-\d\d(T|$)/i.test(instant)) return new Date(Number.NaN)
  return new Date(instant.replace(/^(?=\d{5}-)/, '+0').toUpperCase())
}

/** A moment or a day in a format. Any other text is shown as it is. */
export function formatTime(format: Intl.DateTimeFormat, instant: Instant): string {
  const date = dateOf(instant)
  return Number.isNaN(date.getTime()) ? String(instant) : format.format(date)
}
