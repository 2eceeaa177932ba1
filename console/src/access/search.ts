export const accessTabs = ['clients', 'tokens', 'roles', 'sessions', 'keys'] as const

/** What the address of the page says: the tab that is open. */
export type AccessSearch = { tab?: (typeof accessTabs)[number] }

export function validateAccessSearch(search: Record<string, unknown>): AccessSearch {
  const tab = accessTabs.find(each => each === search.tab)
  return tab ? { tab } : {}
}
