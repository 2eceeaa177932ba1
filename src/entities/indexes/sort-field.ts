import { peopleStackId } from '../../organizations/definitions.ts'
import {
  attributePrefix,
  type ProfileFlag,
  type ProfileText,
  profileFlags,
  profileTexts,
} from '../../values/profile-fields.ts'

export const timeColumns = ['created_at', 'updated_at'] as const
export type SortTime = (typeof timeColumns)[number]

/** A field that sorts entities, and where its value is stored. */
export type SortField =
  | { kind: 'text'; column: ProfileText | 'external_id' }
  | { kind: 'boolean'; column: ProfileFlag }
  | { kind: 'time'; column: SortTime }
  | { kind: 'attribute'; key: string }

const recordFields = new Map<string, SortField>([
  ['external_id', { kind: 'text', column: 'external_id' }],
  ...timeColumns.map((column): [string, SortField] => [column, { kind: 'time', column }]),
])

const personFields = new Map<string, SortField>([
  ...recordFields,
  ...profileTexts.map((column): [string, SortField] => [column, { kind: 'text', column }]),
  ...profileFlags.map((column): [string, SortField] => [column, { kind: 'boolean', column }]),
])

/** The fixed fields that sort people, and those that sort records. */
export const sortFieldNames = (stack_id: number): string[] => [
  ...(stack_id === peopleStackId ? personFields : recordFields).keys(),
]

/** The field with that name, or undefined. After `attribute_values.` the rest of the name is the key, including dots. */
export function sortFieldOf(name: string, stack_id: number): SortField | undefined {
  if (name.startsWith(attributePrefix)) return { kind: 'attribute', key: name.slice(attributePrefix.length) }
  return (stack_id === peopleStackId ? personFields : recordFields).get(name)
}
