import { addressReader, oneOf } from '../app/search-params.ts'

/** What the address of the page says: the tab that is open. */
export const validateAccessSearch = addressReader({
  tab: oneOf(['accounts', 'clients', 'tokens', 'roles', 'sessions', 'keys']),
})
export type AccessSearch = ReturnType<typeof validateAccessSearch>
