import { profile_flags, profile_texts } from '../entities/sql.ts'
import { people_stack_id } from '../organizations/definitions.ts'
import { type Field, time_columns } from './grammar.ts'

const attribute_prefix = 'attribute_values.'

const shared: [string, Field][] = [
  ['external_id', { kind: 'text', column: 'external_id' }],
  ['state', { kind: 'state' }],
  ...time_columns.map((column): [string, Field] => [column, { kind: 'time', column }]),
]

const of_people = new Map<string, Field>([
  ...shared,
  ['id', { kind: 'id' }],
  ...profile_texts.map((column): [string, Field] => [column, { kind: 'text', column }]),
  ...profile_flags.map((column): [string, Field] => [column, { kind: 'boolean', column }]),
])

const of_records = new Map<string, Field>([...shared, ['record_id', { kind: 'record_id' }]])

/** The field of that name; all after the first dot of `attribute_values.` is the key. Undefined where there is none. */
export function fieldOf(name: string, stack_id: number): Field | undefined {
  if (name.startsWith(attribute_prefix)) return { kind: 'attribute', key: name.slice(attribute_prefix.length) }
  return (stack_id === people_stack_id ? of_people : of_records).get(name)
}
