/** What the address of the page says: the interval of its plots. */
export type ConsentsSearch = { interval?: 'day' | 'week' | 'month' }

export function validateConsentsSearch({ interval }: Record<string, unknown>): ConsentsSearch {
  return interval === 'day' || interval === 'week' || interval === 'month' ? { interval } : {}
}
