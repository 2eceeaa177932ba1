import { addressReader, oneOf } from '../app/search-params.ts'

/** The interval of the plots, from the address of the page. */
export const validateConsentsSearch = addressReader({ interval: oneOf(['day', 'week', 'month']) })
export type ConsentsSearch = ReturnType<typeof validateConsentsSearch>
