/** How old something is. Of a moment that is still to come, for the clock was set back, nothing is known: too old. */
export function ageOf(since_ms: number, now_ms: number): number {
  return now_ms < since_ms ? Number.POSITIVE_INFINITY : now_ms - since_ms
}
