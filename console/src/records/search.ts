/** What the address of the list says: the text that was searched for, and the sort. */
export type RecordsSearch = { text?: string }

export function validateRecordsSearch(search: Record<string, unknown>): RecordsSearch {
  return typeof search.text === 'string' ? { text: search.text } : {}
}
