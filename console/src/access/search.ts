import { addressReader, oneOf } from '../app/search-params.ts'

/** The open tab, from the address of the page. */
export const validateAccessSearch = addressReader({
  tab: oneOf(['accounts', 'clients', 'tokens', 'roles', 'sessions', 'keys']),
})
export type AccessSearch = ReturnType<typeof validateAccessSearch>
