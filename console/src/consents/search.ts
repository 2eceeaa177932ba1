import { addressReader, oneOf } from '../app/search-params.ts'

/** What the address of the page says: the interval of its plots. */
export const validateConsentsSearch = addressReader({ interval: oneOf(['day', 'week', 'month']) })
export type ConsentsSearch = ReturnType<typeof validateConsentsSearch>
