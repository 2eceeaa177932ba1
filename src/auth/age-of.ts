/**
 * The milliseconds between `sinceMs` and `nowMs`. The age is infinite if `sinceMs` lies in the future, because the
 * clock was set back: the caller then treats the value as expired.
 */
export function ageOf(sinceMs: number, nowMs: number): number {
  return nowMs < sinceMs ? Number.POSITIVE_INFINITY : nowMs - sinceMs
}
