import type { Static } from 'typebox'
import { definitionKey, definitionName, times } from '../organizations/definition-schema.ts'
import { closedObject, filledText, nullable, optionals, Type, text } from '../values/json-schema.ts'

const kind = Type.Enum(['item', 'event'], {
  description: 'Records of an event stack are immutable. The kind never changes.',
})

const retention_days = nullable(
  Type.Integer({
    minimum: 1,
    maximum: 36_500,
    description:
      'Only for an event stack: kith erases each record this many days after its creation. Null, the default: never.',
  }),
)

const label = nullable(
  filledText(
    200,
    'The template of the names of its records: `{key}` is the value of an attribute, `{relationship}` the name of its target, and `{relationship.key}` an attribute of the target. `{{` and `}}` are braces. Null, the default: records are named by their identifier.',
  ),
)

const attributeKey = (description: string) => Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$', description })

const measure = closedObject(
  {
    op: Type.Enum(['count', 'sum', 'avg', 'min', 'max']),
    key: Type.Optional(attributeKey('A number of the stack. Only `count` needs none.')),
  },
  { title: 'StackMeasure' },
)

const summary = nullable(
  closedObject(
    {
      person: attributeKey('The relationship that leads to the person whom a record is about.'),
      time: Type.Optional(
        nullable(attributeKey('The date or time at which a record happened. Null, the default: its creation.')),
      ),
      measures: Type.Array(measure, { minItems: 1, maxItems: 5 }),
    },
    {
      title: 'StackSummary',
      description:
        'The measures of the records of a person, such as their number and the sum of their totals. The page of the person shows them for ' +
        'the last twelve months, by the aggregate endpoint. Null, the default: none.',
    },
  ),
)

const erased_with = nullable(
  attributeKey(
    'A relationship to people: an erasure of the person also erases the records that it links to the person, whatever its `records` says. ' +
      'Null, the default: records stay unless the erasure asks for them.',
  ),
)

const changeable = optionals({ name: definitionName, retention_days, label, summary, erased_with })

export const newStack = closedObject(
  { key: definitionKey, kind, ...changeable },
  { title: 'StackBody', examples: [{ key: 'your_key', kind: 'item' }] },
)
export type StackBody = Static<typeof newStack>

/** Body of PATCH /v1/schema/stacks/{stack_key}. The key and the kind never change. */
export const stackPatch = closedObject(changeable, { title: 'StackPatch', examples: [{}] })
export type StackPatch = Static<typeof stackPatch>

export const stack = Type.Object(
  { key: text(), name: text(), kind, retention_days, label, summary, erased_with, ...times },
  {
    title: 'Stack',
    description: 'A stack as reads return it.',
    examples: [
      {
        key: 'orders',
        name: 'orders',
        kind: 'item',
        retention_days: null,
        label: null,
        summary: null,
        erased_with: null,
        created_at: '2026-01-01T12:00:00.000Z',
        updated_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)
