import { useState } from 'react'

/** The widths in pixels that somebody gave columns, by their names. The others share the rest of the window. */
export type ColumnWidths = Readonly<Record<string, number>>
export type Resize = (name: string, width: number | undefined) => void

const storageKey = (owner: string) => `kith.${owner}.widths`

function storedWidths(owner: string): ColumnWidths {
  try {
    return JSON.parse(localStorage.getItem(storageKey(owner)) ?? '{}')
  } catch {
    return {}
  }
}

/** The widths of the columns of a list, which this browser keeps. */
export function useColumnWidths(owner: string): { widths: ColumnWidths; resize: Resize; reset(): void } {
  const [widths, setWidths] = useState(() => storedWidths(owner))
  const keep = (next: ColumnWidths) => {
    setWidths(next)
    localStorage.setItem(storageKey(owner), JSON.stringify(next))
  }
  return {
    widths,
    resize: (name, width) => {
      const { [name]: _, ...others } = widths
      keep(width === undefined ? others : { ...others, [name]: Math.round(width) })
    },
    reset: () => keep({}),
  }
}
