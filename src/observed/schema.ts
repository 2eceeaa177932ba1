import type { Static } from 'typebox'
import { attribute } from '../attributes/schema.ts'
import { definitionDescription, definitionName } from '../organizations/definition-schema.ts'
import { closedObject, count, flag, nullable, number, Type, text, time } from '../values/json-schema.ts'

const owner = Type.String({ minLength: 1, description: '`people`, or the key of a stack.' })

/** The types by which values are counted. A text that is a date or a date and time counts only as that. */
export const observedTypes = ['text', 'number', 'boolean', 'object', 'array', 'date', 'datetime'] as const
export type ObservedType = (typeof observedTypes)[number]

/** Numbers of values by type. */
const observedTypeCounts = Type.Object(
  {
    text: count(),
    number: count(),
    boolean: count(),
    object: count(),
    array: count(),
    date: count(),
    datetime: count(),
  },
  {
    title: 'ObservedTypes',
    description: 'The number of values by type. A text that is a date or a date and time counts as that.',
  },
)

/** The query of GET /v1/schema/observed. */
export const observedQuery = closedObject({
  owner: Type.Optional(
    Type.String({ minLength: 1, description: "`people`, or the key of a stack. Default: 'people'." }),
  ),
})
export type ObservedQuery = Static<typeof observedQuery>

/** A key of stored values that no attribute declares. */
const observedKey = Type.Object(
  {
    key: text(),
    types: observedTypeCounts,
    count: number('The number of stored values under the key.'),
    first_seen: time('The first creation of an entity that has the key.'),
    last_seen: time('The last change of an entity that has the key.'),
    declarable: flag('Whether an attribute can have this key.'),
    examples: Type.Array(text(), {
      maxItems: 3,
      description:
        'The identifiers of the newest entities that have the key, at most 3. Empty without the read scope of the owner.',
    }),
  },
  { title: 'ObservedKey', description: 'A key of stored values that no attribute declares.' },
)
export type ObservedKey = Static<typeof observedKey>

const exampleTypes = { text: 12, number: 0, boolean: 0, object: 0, array: 0, date: 0, datetime: 0 }

const totals = {
  sequence: count('The number of the last change before the count began.'),
  entities: count('The number of entities whose values were counted.'),
  truncated: flag(
    'Whether there are more entities or more than 10,000 keys. The counts are then those of a sample: of the newest entities.',
  ),
}

/** A line of the stream of observed keys: a key, or the totals at the end. */
export const observedLine = Type.Union([observedKey, Type.Object(totals, { title: 'ObservedEnd' })], {
  title: 'ObservedLine',
  description: 'A line of a stream of observed keys: a key, or at the end what was counted.',
})

/** The response of GET /v1/schema/observed. */
export const observedKeys = Type.Object(
  { items: Type.Array(observedKey, { description: 'In the order of the keys.' }), ...totals },
  {
    title: 'ObservedKeys',
    description: 'The undeclared keys of an owner.',
    examples: [
      {
        items: [
          {
            key: 'city',
            types: exampleTypes,
            count: 12,
            first_seen: '2026-01-01T12:00:00.000Z',
            last_seen: '2026-01-02T12:00:00.000Z',
            declarable: true,
            examples: ['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'],
          },
        ],
        sequence: 40,
        entities: 30,
        truncated: false,
      },
    ],
  },
)

/** The types that a key can be declared with. Stored values cannot become links. */
export const declaredTypes = ['text', 'number', 'boolean', 'date', 'datetime', 'json'] as const

/** Body of PUT /v1/schema/observed/declare. */
export const declareBody = closedObject(
  {
    owner,
    key: Type.String({
      minLength: 1,
      description: 'The key to declare: 1 to 63 characters of a–z, 0–9 and _, the first a letter.',
    }),
    type: Type.Enum([...declaredTypes]),
    cardinality: Type.Optional(Type.Enum(['one', 'many'])),
    indexed: Type.Optional(flag()),
    name: Type.Optional(definitionName),
    description: Type.Optional(definitionDescription),
    dry_run: Type.Optional(flag('Whether to count only, and to declare nothing.')),
  },
  { title: 'DeclareBody', examples: [{ owner: 'people', key: 'your_undeclared_key', type: 'text', dry_run: true }] },
)
export type DeclareBody = Static<typeof declareBody>

/** The response of PUT /v1/schema/observed/declare. */
export const declared = Type.Object(
  {
    attribute: nullable(attribute),
    fits: count('The number of stored values that the attribute would accept.'),
    misfits: count('The number of stored values that it would refuse. They stay and read unchanged.'),
    misfit_types: observedTypeCounts,
    examples: Type.Array(text(), {
      maxItems: 10,
      description:
        'The identifiers of up to 10 entities whose value does not fit. Empty without the read scope of the owner.',
    }),
  },
  {
    title: 'Declared',
    description: '`attribute` is null in a dry run.',
    examples: [
      {
        attribute: null,
        fits: 12,
        misfits: 1,
        misfit_types: { ...exampleTypes, text: 1 },
        examples: ['01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'],
      },
    ],
  },
)
