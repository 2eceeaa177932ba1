import type { Definitions } from '@kith/client'
import { useState } from 'react'
import { mayUse } from '../app/field-rights.ts'
import { useDefinitions } from '../entity/schema.ts'
import { attributePrefix } from '../filters/field-types.ts'
import type { Change, ListSearch } from './search.ts'

const ofPeople = ['email', 'external_id', 'mobile_number', 'language', 'created_at']

/** The default columns of a list. For records these are the attributes, or all values in one column. */
function standardColumns(owner: string, { attributes, stacks }: Definitions): string[] {
  if (owner === 'people') return ofPeople
  // The first column may already be an attribute, if it is the name of the records.
  const label = stacks.find(({ key }) => key === owner)?.label
  const own = attributes.filter(
    attribute => attribute.owner === owner && attribute.state === 'active' && label !== `{${attribute.key}}`,
  )
  const values = own.length === 0 ? ['attribute_values'] : own.map(({ key }) => attributePrefix + key)
  return [...values, 'created_at', 'updated_at']
}

const storageKey = (owner: string) => `kith.${owner}.columns`

/** The names of the columns: from the address, else chosen earlier in this browser, else the default ones. */
export function chosenColumns(owner: string, inAddress: string | undefined, definitions: Definitions): string[] {
  const text = inAddress ?? localStorage.getItem(storageKey(owner))
  const names = text === null ? standardColumns(owner, definitions) : text.split(',')
  return names.filter(name => name !== '' && mayUse('read', owner, name))
}

const widthsKey = (owner: string) => `kith.${owner}.widths`

/** The chosen widths of columns in pixels, by their names. The other columns share the rest of the window. */
function storedWidths(owner: string): Readonly<Record<string, number>> {
  try {
    return JSON.parse(localStorage.getItem(widthsKey(owner)) ?? '{}')
  } catch {
    return {}
  }
}

/** The names of a list's columns and their widths, which this browser stores, and the functions that change them. */
export function useChosenColumns(owner: string, search: ListSearch, change: Change) {
  const { definitions } = useDefinitions()
  const [widths, setWidths] = useState(() => storedWidths(owner))
  const keepWidths = (next: typeof widths) => {
    setWidths(next)
    localStorage.setItem(widthsKey(owner), JSON.stringify(next))
  }
  const choose = (chosen: readonly string[]) => {
    const text = chosen.join(',')
    localStorage.setItem(storageKey(owner), text)
    change({ columns: text }, true)
  }
  return {
    names: chosenColumns(owner, search.columns, definitions),
    choose,
    widths,
    resize: (name: string, width: number | undefined) => {
      const { [name]: _, ...others } = widths
      keepWidths(width === undefined ? others : { ...others, [name]: Math.round(width) })
    },
    reset: () => {
      keepWidths({})
      choose(standardColumns(owner, definitions))
    },
  }
}

export type ChosenColumns = ReturnType<typeof useChosenColumns>
