/** How old something is. Of a moment that is still to come, for the clock was set back, nothing is known: too old. */
export function ageOf(sinceMs: number, nowMs: number): number {
  return nowMs < sinceMs ? Number.POSITIVE_INFINITY : nowMs - sinceMs
}
