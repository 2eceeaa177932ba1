import { useCallback, useRef, useState } from 'react'

/** The chosen rows of a list: some by their identifiers, or all matches, including rows that are not loaded yet. */
export type Selection = { ids: ReadonlySet<string>; isAll: boolean }

const none: Selection = { ids: new Set(), isAll: false }

/** The chosen rows of a list. A change of the list clears them. */
export function useSelection(listKey: string, rows: readonly { id: string }[]) {
  const [stored, setStored] = useState({ listKey, selection: none })
  const selection = stored.listKey === listKey ? stored.selection : none
  const anchor = useRef(-1)
  const set = (selection: Selection) => setStored({ listKey, selection })
  const loaded = () => new Set(rows.map(({ id }) => id))
  const toggle = (index: number, isRange: boolean) => {
    const row = rows[index]
    if (!row) return
    const ids = selection.isAll ? loaded() : new Set(selection.ids)
    const isChosen = !ids.has(row.id)
    const from = isRange && anchor.current >= 0 ? anchor.current : index
    for (const { id } of rows.slice(Math.min(from, index), Math.max(from, index) + 1))
      if (isChosen || isRange) ids.add(id)
      else ids.delete(id)
    anchor.current = index
    set({ ids, isAll: false })
  }
  const latest = useRef(toggle)
  latest.current = toggle
  const count = selection.isAll ? rows.length : selection.ids.size
  return {
    selection,
    count,
    isChosen: (id: string) => selection.isAll || selection.ids.has(id),
    /** Chooses a row, or with `isRange` all rows from the last chosen one. */
    toggle: useCallback((index: number, isRange: boolean) => latest.current(index, isRange), []),
    toggleLoaded: () => set(count > 0 ? none : { ids: loaded(), isAll: false }),
    chooseAll: () => set({ ids: new Set(), isAll: true }),
    clear: () => set(none),
  }
}
