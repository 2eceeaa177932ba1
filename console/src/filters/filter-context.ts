import { type Definitions, filterLimits, type Segment } from '@kith/client'
import { createContext, useContext } from 'react'
import { useMessages } from '../app/language.tsx'
import { fieldTypesOf, type Owner } from './field-types.ts'
import { type FilterField, fieldsOf, incomingFieldsOf } from './fields.ts'
import { messages } from './messages.ts'
import type { FieldTypes } from './read-filter.ts'

/** The choices of the builder: the definitions of the organization, and its segments. */
export type FilterChoices = { definitions: Definitions | undefined; segments: readonly Segment[] }

export const FilterChoicesContext = createContext<FilterChoices>({ definitions: undefined, segments: [] })

export const useFilterChoices = () => useContext(FilterChoicesContext)

/** The number of relationships that lead to the conditions of a group. */
export const HopsContext = createContext(0)

/** Whether a condition may follow a relationship. The API limits how many a condition follows in a row. */
export const useMayFollow = () => useContext(HopsContext) < filterLimits.relationDepth

/** The fields of an owner, with the relationships that lead to it, and their types. */
export function useFields(owner: Owner): { fields: FilterField[]; types: FieldTypes } {
  const texts = useMessages(messages)
  const { definitions } = useFilterChoices()
  const fields = [...fieldsOf(owner, definitions, texts), ...incomingFieldsOf(owner, definitions, texts)]
  return { fields, types: fieldTypesOf(owner, definitions) }
}
