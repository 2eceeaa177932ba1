import type { Definitions, Segment } from '@kith/client'
import { createContext, useContext, useMemo } from 'react'
import { useMessages } from '../app/language.tsx'
import { fieldTypesOf, type Owner } from './field-types.ts'
import { type FilterField, fieldsOf } from './fields.ts'
import { messages } from './messages.ts'
import type { FieldTypes } from './read-filter.ts'

/** What the parts of the builder choose from: the definitions of the organization, and its segments. */
export type FilterChoices = { definitions: Definitions | undefined; segments: readonly Segment[] }

export const FilterChoicesContext = createContext<FilterChoices>({ definitions: undefined, segments: [] })

export const useFilterChoices = () => useContext(FilterChoicesContext)

/** The fields of an owner and their types. */
export function useFields(owner: Owner): { fields: FilterField[]; types: FieldTypes } {
  const texts = useMessages(messages)
  const { definitions } = useFilterChoices()
  return useMemo(
    () => ({ fields: fieldsOf(owner, definitions, texts), types: fieldTypesOf(owner, definitions) }),
    [owner, definitions, texts],
  )
}
