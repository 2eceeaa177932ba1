import type { Static } from 'typebox'
import { Type } from '../json-schema.ts'
import {
  definitionDescription,
  definitionKey,
  definitionName,
  definitionState,
  nullable,
  times,
} from '../organizations/definition-schema.ts'

const cardinality = Type.Enum(['one', 'many'], {
  description: '`one` can change to `many`, but `many` cannot change to `one`.',
})

/** The types of attributes. The last two are relationships. */
export const attributeTypes = ['text', 'number', 'boolean', 'date', 'datetime', 'json', 'person', 'stack'] as const
const type = Type.Enum([...attributeTypes])

/** The names of the rules, in the order of reads. */
export const ruleNames = ['required', 'unique', 'enum', 'pattern', 'minimum', 'maximum'] as const
export type RuleName = (typeof ruleNames)[number]

const bound = (which: string) =>
  Type.Union([Type.Number(), Type.String(), Type.Null()], {
    description: `The ${which} value, for types \`number\`, \`date\` and \`datetime\`.`,
  })

/** The conditions on values besides the type, for later writes. */
const rules = {
  required: Type.Boolean({
    description: 'Whether creates, PUT and writes of this key need a value. Placeholders have none.',
  }),
  unique: Type.Boolean({
    description:
      'Whether no two entities have the same value. Needs `indexed: true`, and the types `text`, `number`, `date` or `datetime`.',
  }),
  enum: nullable(
    Type.Array(Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
      minItems: 1,
      maxItems: 500,
      description: 'The allowed values. They are of the type of the attribute, and each is given once.',
    }),
  ),
  pattern: nullable(
    Type.String({
      minLength: 1,
      maxLength: 512,
      description:
        'For type `text`: a regular expression in the syntax of RE2 that a part of the value matches. `^` and `$` are its ends.',
    }),
  ),
  minimum: bound('smallest'),
  maximum: bound('largest'),
}

const optionalRules = {
  required: Type.Optional(rules.required),
  unique: Type.Optional(rules.unique),
  enum: Type.Optional(rules.enum),
  pattern: Type.Optional(rules.pattern),
  minimum: Type.Optional(rules.minimum),
  maximum: Type.Optional(rules.maximum),
}

/** Body of POST /v1/schema/attributes. */
export const newAttribute = Type.Object(
  {
    key: definitionKey,
    owner: Type.String({ description: '`people`, or the key of a stack.' }),
    type,
    target_stack: Type.Optional(
      nullable(Type.String({ description: 'For type `stack`: the key of the target stack.' })),
    ),
    name: Type.Optional(definitionName),
    description: Type.Optional(definitionDescription),
    cardinality: Type.Optional(cardinality),
    indexed: Type.Optional(Type.Boolean({ description: 'Whether an index serves equalities and ranges.' })),
    searchable: Type.Optional(
      Type.Boolean({ description: 'For type `text`: whether a search finds entities by the words of the value.' }),
    ),
    ...optionalRules,
  },
  {
    additionalProperties: false,
    title: 'NewAttribute',
    examples: [{ key: 'your_key', owner: 'people', type: 'text' }],
  },
)
export type NewAttribute = Static<typeof newAttribute>

/** The most attributes of a batch: as many as an organization may have by default. */
export const maxBatchedAttributes = 5_000

const oneOfEachKey = { distinctBy: ['key', 'owner'], description: 'At most one attribute of each owner and key.' }

/** Body of POST /v1/schema/attributes/batch. */
export const newAttributes = Type.Object(
  { items: Type.Array(newAttribute, { minItems: 1, maxItems: maxBatchedAttributes, ...oneOfEachKey }) },
  {
    additionalProperties: false,
    title: 'NewAttributes',
    examples: [{ items: ['first_key', 'second_key'].map(key => ({ key, owner: 'people', type: 'text' })) }],
  },
)
export type NewAttributes = Static<typeof newAttributes>

/** Body of PATCH /v1/schema/attributes/{id}. Owner, key, type and target never change. `false` or null removes a rule. */
export const attributePatch = Type.Object(
  {
    name: Type.Optional(definitionName),
    description: Type.Optional(definitionDescription),
    cardinality: Type.Optional(cardinality),
    indexed: Type.Optional(Type.Boolean()),
    searchable: Type.Optional(Type.Boolean()),
    ...optionalRules,
    state: Type.Optional(definitionState),
  },
  { additionalProperties: false, title: 'AttributePatch', examples: [{}] },
)
export type AttributePatch = Static<typeof attributePatch>

const indexState = Type.Object(
  {
    state: Type.Enum(['ready', 'filling']),
    indexed: Type.Integer({ minimum: 0, description: 'The number of entities whose values are in the index.' }),
    total: Type.Integer({ minimum: 0, description: 'The approximate number of entities to index.' }),
  },
  { title: 'IndexState', description: 'The progress of the index of the attribute.' },
)

/** An attribute as a read shows it. */
export const attribute = Type.Object(
  {
    id: Type.Integer({ minimum: 1 }),
    key: Type.String(),
    name: Type.String(),
    description: definitionDescription,
    owner: Type.String({ description: '`people`, or the key of a stack.' }),
    type,
    target_stack: nullable(Type.String({ description: 'For type `stack`: the key of the target stack.' })),
    cardinality,
    indexed: Type.Boolean(),
    index_state: nullable(indexState),
    searchable: Type.Boolean({ description: 'Whether a search finds entities by the words of the value.' }),
    ...rules,
    state: definitionState,
    ...times,
  },
  {
    title: 'Attribute',
    examples: [
      {
        id: 1,
        key: 'total',
        name: 'total',
        description: null,
        owner: 'orders',
        type: 'number',
        target_stack: null,
        cardinality: 'one',
        indexed: true,
        index_state: { state: 'ready', indexed: 0, total: 0 },
        searchable: false,
        required: false,
        unique: false,
        enum: null,
        pattern: null,
        minimum: 0,
        maximum: null,
        state: 'active',
        created_at: '2026-01-01T12:00:00.000Z',
        updated_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)
