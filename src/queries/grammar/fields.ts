import { peopleStackId } from '../../organizations/definitions.ts'
import { attributePrefix, profileFlags, profileTexts } from '../../values/profile-fields.ts'
import { type Field, timeColumns } from './grammar.ts'

const sharedFields: [string, Field][] = [
  ['external_id', { kind: 'text', column: 'external_id' }],
  ['state', { kind: 'state' }],
  ...timeColumns.map((column): [string, Field] => [column, { kind: 'time', column }]),
]

const personFields = new Map<string, Field>([
  ...sharedFields,
  ['id', { kind: 'id' }],
  ...profileTexts.map((column): [string, Field] => [column, { kind: 'text', column }]),
  ...profileFlags.map((column): [string, Field] => [column, { kind: 'boolean', column }]),
])

const recordFields = new Map<string, Field>([...sharedFields, ['record_id', { kind: 'record_id' }]])

/** The names of the fields of an entity that are no attributes. */
export const fieldNamesOf = (stack_id: number): Iterable<string> =>
  (stack_id === peopleStackId ? personFields : recordFields).keys()

/** The field with that name, or undefined. After `attribute_values.` the rest of the name is the key, including dots. */
export function fieldOf(name: string, stack_id: number): Field | undefined {
  if (name.startsWith(attributePrefix)) return { kind: 'attribute', key: name.slice(attributePrefix.length) }
  return (stack_id === peopleStackId ? personFields : recordFields).get(name)
}
