/** What the address of the list says: the text that was searched for, and the sort. */
export type PeopleSearch = { text?: string }

export function validatePeopleSearch(search: Record<string, unknown>): PeopleSearch {
  return typeof search.text === 'string' ? { text: search.text } : {}
}
