import { profileFlags, profileTexts } from '../entities/sql.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import { type Field, timeColumns } from './grammar.ts'

const attributePrefix = 'attribute_values.'

const shared: [string, Field][] = [
  ['external_id', { kind: 'text', column: 'external_id' }],
  ['state', { kind: 'state' }],
  ...timeColumns.map((column): [string, Field] => [column, { kind: 'time', column }]),
]

const ofPeople = new Map<string, Field>([
  ...shared,
  ['id', { kind: 'id' }],
  ...profileTexts.map((column): [string, Field] => [column, { kind: 'text', column }]),
  ...profileFlags.map((column): [string, Field] => [column, { kind: 'boolean', column }]),
])

const ofRecords = new Map<string, Field>([...shared, ['record_id', { kind: 'record_id' }]])

/** The field of that name; all after the first dot of `attribute_values.` is the key. Undefined where there is none. */
export function fieldOf(name: string, stack_id: number): Field | undefined {
  if (name.startsWith(attributePrefix)) return { kind: 'attribute', key: name.slice(attributePrefix.length) }
  return (stack_id === peopleStackId ? ofPeople : ofRecords).get(name)
}
