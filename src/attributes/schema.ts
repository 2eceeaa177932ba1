import type { Static } from 'typebox'
import {
  definitionDescription,
  definitionKey,
  definitionName,
  definitionState,
  times,
} from '../organizations/definition-schema.ts'
import { attributeTypes, noRules, optionalRuleSchemas, ruleSchemas } from '../values/attribute-rules.ts'
import { closedObject, count, flag, nullable, number, Type, text } from '../values/json-schema.ts'

const cardinality = Type.Enum(['one', 'many'], {
  description: '`one` can change to `many`, but `many` cannot change to `one`.',
})

const type = Type.Enum([...attributeTypes])

/** Body of POST /v1/schema/attributes. */
export const newAttribute = closedObject(
  {
    key: definitionKey,
    owner: text('`people`, or the key of a stack.'),
    type,
    target_stack: Type.Optional(nullable(text('For type `stack`: the key of the target stack.'))),
    name: Type.Optional(definitionName),
    description: Type.Optional(definitionDescription),
    cardinality: Type.Optional(cardinality),
    indexed: Type.Optional(flag('Whether an index serves equalities and ranges.')),
    searchable: Type.Optional(flag('For type `text`: whether a search finds entities by the words of the value.')),
    ...optionalRuleSchemas,
  },
  { title: 'AttributeBody', examples: [{ key: 'your_key', owner: 'people', type: 'text' }] },
)
export type AttributeBody = Static<typeof newAttribute>

/** The maximum number of attributes in a batch, which is an organization's default limit. */
export const maxBatchedAttributes = 5_000

const oneOfEachKey = { distinctBy: ['key', 'owner'], description: 'At most one attribute of each owner and key.' }

/** Body of POST /v1/schema/attributes/batch. */
export const newAttributes = closedObject(
  { items: Type.Array(newAttribute, { minItems: 1, maxItems: maxBatchedAttributes, ...oneOfEachKey }) },
  {
    title: 'AttributesBody',
    examples: [{ items: ['first_key', 'second_key'].map(key => ({ key, owner: 'people', type: 'text' })) }],
  },
)
export type AttributesBody = Static<typeof newAttributes>

/**
 * Body of PATCH /v1/schema/attributes/{id}. Owner, key, type and target never change. `false` or null removes a rule.
 */
export const attributePatch = closedObject(
  {
    name: Type.Optional(definitionName),
    description: Type.Optional(definitionDescription),
    cardinality: Type.Optional(cardinality),
    indexed: Type.Optional(flag()),
    searchable: Type.Optional(flag()),
    ...optionalRuleSchemas,
    state: Type.Optional(definitionState),
  },
  { title: 'AttributePatch', examples: [{}] },
)
export type AttributePatch = Static<typeof attributePatch>

const indexState = Type.Object(
  {
    state: Type.Enum(['ready', 'filling']),
    indexed: count('The number of entities whose values are in the index.'),
    total: count('The approximate number of entities to index.'),
  },
  { title: 'IndexState', description: 'The progress of the index of the attribute.' },
)

/** An attribute as in a read. */
export const attribute = Type.Object(
  {
    id: number(),
    key: text(),
    name: text(),
    description: definitionDescription,
    owner: text('`people`, or the key of a stack.'),
    type,
    target_stack: nullable(text('For type `stack`: the key of the target stack.')),
    cardinality,
    indexed: flag(),
    index_state: nullable(indexState),
    searchable: flag('Whether a search finds entities by the words of the value.'),
    ...ruleSchemas,
    state: definitionState,
    ...times,
  },
  {
    title: 'Attribute',
    description: 'An attribute as reads return it.',
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
        ...noRules,
        minimum: 0,
        state: 'active',
        created_at: '2026-01-01T12:00:00.000Z',
        updated_at: '2026-01-01T12:00:00.000Z',
      },
    ],
  },
)
