export const defaultColumns = ['email', 'external_id', 'mobile_number', 'language', 'created_at']

const storageKey = 'kith.people.columns'

/** The names of the columns: those of the address, else those chosen here before, else the standard ones. */
export function chosenColumns(inAddress: string | undefined): string[] {
  const text = inAddress ?? localStorage.getItem(storageKey)
  return text === null ? defaultColumns : text.split(',').filter(name => name !== '')
}

export function storeColumns(names: readonly string[]): void {
  localStorage.setItem(storageKey, names.join(','))
}
