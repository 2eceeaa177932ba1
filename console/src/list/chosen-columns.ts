import type { Definitions } from '@kith/client'
import { useState } from 'react'
import { mayUse } from '../app/field-rights.ts'
import { attributePrefix } from '../filters/field-types.ts'

const ofPeople = ['email', 'external_id', 'mobile_number', 'language', 'created_at']

/** The columns of a list unless somebody chooses others. Those of records are their attributes, or all values in one column. */
export function standardColumns(owner: string, { attributes, stacks }: Definitions): string[] {
  if (owner === 'people') return ofPeople
  // The first column may be an attribute already, if the records are named by it.
  const label = stacks.find(({ key }) => key === owner)?.label
  const own = attributes.filter(
    attribute => attribute.owner === owner && attribute.state === 'active' && label !== `{${attribute.key}}`,
  )
  const values = own.length === 0 ? ['attribute_values'] : own.map(({ key }) => attributePrefix + key)
  return [...values, 'created_at', 'updated_at']
}

const storageKey = (owner: string) => `kith.${owner}.columns`

/** The names of the columns: those of the address, else those chosen here before, else the standard ones. */
export function chosenColumns(owner: string, inAddress: string | undefined, definitions: Definitions): string[] {
  const text = inAddress ?? localStorage.getItem(storageKey(owner))
  const names = text === null ? standardColumns(owner, definitions) : text.split(',')
  return names.filter(name => name !== '' && mayUse('read', owner, name))
}

export function storeColumns(owner: string, names: readonly string[]): void {
  localStorage.setItem(storageKey(owner), names.join(','))
}

/** The widths in pixels that somebody gave columns, by their names. The others share the rest of the window. */
export type ColumnWidths = Readonly<Record<string, number>>
export type Resize = (name: string, width: number | undefined) => void

const widthsKey = (owner: string) => `kith.${owner}.widths`

function storedWidths(owner: string): ColumnWidths {
  try {
    return JSON.parse(localStorage.getItem(widthsKey(owner)) ?? '{}')
  } catch {
    return {}
  }
}

/** The widths of the columns of a list, which this browser keeps. */
export function useColumnWidths(owner: string): { widths: ColumnWidths; resize: Resize; reset(): void } {
  const [widths, setWidths] = useState(() => storedWidths(owner))
  const keep = (next: ColumnWidths) => {
    setWidths(next)
    localStorage.setItem(widthsKey(owner), JSON.stringify(next))
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
