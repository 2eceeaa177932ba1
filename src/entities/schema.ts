import type { TSchema } from 'typebox'
import { answerChange } from '../consents/schema.ts'
import { examplesOf, times } from '../organizations/definition-schema.ts'
import type { Limits } from '../process/config.ts'
import { detail } from '../values/errors.ts'
import { count, flag, nullable, number, Type, text, time } from '../values/json-schema.ts'
import { matchKinds } from './write-request.ts'

/**
 * The page at /docs/api sends example bodies with one click. This body renames and overwrites nothing, and gives no
 * consent.
 */
export const harmlessBody = { attribute_values: {} }

/** The identifier in the examples of bodies that need one. */
export const exampleName = 'your-external-id'

/** The client's own identifier of a person or record. */
export function externalId({ profileCharacters }: Limits) {
  return Type.Optional(
    nullable(
      Type.String({
        format: 'external-id',
        maxLength: profileCharacters,
        description: "The client's own identifier; on update, the new one.",
      }),
    ),
  )
}

/** Custom attribute values by key: any JSON. The value of a declared attribute has its type. */
export function attributeValues({ requestKeys }: Limits) {
  return Type.Optional(
    nullable(
      Type.Record(text(), Type.Unknown(), {
        maxProperties: requestKeys,
        title: 'AttributeValuesBody',
        description:
          'Custom attribute values. The value of a relationship is the external identifier of its target, or an array of them for `many`. ' +
          'PATCH and upsert also take `{"$add": [], "$remove": []}` for an attribute of cardinality `many`, which changes single elements or links.',
      }),
    ),
  )
}

/** `match` in the body of an upsert or a batch of people. */
export const matchBody = Type.Optional(
  Type.Array(Type.Enum(matchKinds), {
    minItems: 1,
    maxItems: 3,
    description:
      'The values by which the person is recognized, in this order. The first one that a stored person has decides. The default is ' +
      'the external identifier alone. Email is compared in lower case, and `mobile` is the phone number with its country.',
  }),
)

/** `labels` of a read: a member of its body, or a parameter of its query. */
export const labels = Type.Optional(
  flag(
    'Whether each entity has `label`, its name for people, and `relationship_labels`, the names of the targets of its relationships.',
  ),
)

/** `links` of reads, export and the change log. */
export const linksById = Type.Optional(
  Type.Literal('id', {
    description:
      'Shows the targets of relationships by their internal identifiers, which never change: `{"id": …}` for a person, `{"record_id": …}` for a record.',
  }),
)

/** The fields that every read of a person or record has in common, besides identifiers. */
export const entityFields = {
  attribute_values: Type.Record(text(), Type.Unknown(), {
    title: 'AttributeValues',
    description:
      'The value of a relationship is the external identifier of its target, or an array of them for `many`.',
  }),
  state: Type.Enum(['active', 'placeholder'], {
    description:
      'A relationship to a missing entity creates a placeholder. A create, or the first write that changes it, makes it active.',
  }),
  version: number('Incremented by every write that changes something.'),
  ...times,
  label: Type.Optional(
    text(
      'Only with `labels`: the name of the entity, at most 200 characters. A person has the first and last name, else the email, phone or identifier; a record what the `label` of its stack says, else the identifier.',
    ),
  ),
  relationship_labels: Type.Optional(
    Type.Record(text(), Type.Record(text(), text()), {
      title: 'RelationshipLabels',
      description:
        'Only with `labels`: by key of a relationship, the label of each target by its identifier. A target that the token may not read has its identifier as label.',
    }),
  ),
  as_of: Type.Optional(
    Type.Object(
      {
        at: time(),
        sequence: number(),
        version: number(),
      },
      {
        title: 'AsOf',
        description:
          'Only in a read with `at` or `version`: the time, the number of the last change until then, and the version of the entity.',
      },
    ),
  ),
}

/**
 * A page of entities. `has_more` is false on the last page. List, filter and related have further members
 * (queries/schema.ts).
 */
export function pageSchema(element: TSchema) {
  const { title } = element as { title?: string }
  return Type.Object(
    { items: Type.Array(element), has_more: flag('Whether another page follows.') },
    { ...(title && { title: `${title}Page` }), examples: [{ items: examplesOf(element), has_more: false }] },
  )
}

const batchDone = Type.Object(
  {
    index: count(),
    status: Type.Enum([200, 201]),
    id: text('The internal identifier.'),
    external_id: nullable(text()),
    warnings: Type.Optional(
      Type.Array(detail, { description: 'Values that are stored as sent although they are no phone number.' }),
    ),
  },
  { title: 'BatchDone' },
)

const batchRefused = Type.Object(
  {
    index: count(),
    status: Type.Integer({ minimum: 400, maximum: 599, description: 'The status of the same request on its own.' }),
    error: text('The error code.'),
    message: text(),
    details: Type.Array(detail, { description: 'The paths begin at the whole body.' }),
    reason: Type.Optional(Type.Literal('erased', { description: 'A value belonged to a person who was erased.' })),
    outcome: Type.Optional(Type.Literal('unknown', { description: 'The outcome of the write is unknown.' })),
  },
  { title: 'BatchRefused' },
)

/** The response of a batch: one item for each operation, in the same order. */
export const batchAnswer = Type.Object(
  { items: Type.Array(Type.Union([batchDone, batchRefused])), failed: count() },
  {
    title: 'BatchAnswer',
    examples: [
      {
        items: [
          { index: 0, status: 201, id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', external_id: 'ada' },
          { index: 1, status: 404, error: 'not_found', message: 'There is no such person.', details: [] },
        ],
        failed: 1,
      },
    ],
  },
)

const dryRunIdentifiers = {
  dry_run: Type.Literal(true),
  result: Type.Enum(['created', 'updated', 'unchanged', 'deleted', 'restored'], {
    description: 'The result that the write would have.',
  }),
  id: nullable(text('The internal identifier. Null if the write would create the person or record.')),
  external_id: nullable(text()),
}

const loggedValues = (description: string) => nullable(Type.Record(text(), Type.Unknown(), { description }))

/** The response of a dry run of one write. */
const dryRunShape = Type.Object(
  {
    ...dryRunIdentifiers,
    version: number('The version after the write.'),
    before: loggedValues(
      'The fields that would change, with their values before, as in the change log. Null if the write would create or restore, or change nothing.',
    ),
    after: loggedValues(
      'The fields that would change, with their values after, as in the change log. Empty for a deletion, null if nothing changes.',
    ),
    placeholders: Type.Array(
      Type.Object({
        kind: text('`people`, or the key of a stack.'),
        external_id: text(),
      }),
      { description: 'The placeholders that the links of the write would create.' },
    ),
    consents: Type.Array(answerChange, {
      description:
        'The standing consent answers that would change. An answer without `collected_at` has the time of the dry run.',
    }),
  },
  {
    title: 'EntityDryRun',
    description: 'With `dry_run=true`: what the write would do. Nothing was stored.',
    examples: [
      {
        dry_run: true,
        result: 'updated',
        id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
        external_id: 'ada',
        version: 3,
        before: { attribute_values: { employer: null } },
        after: { attribute_values: { employer: 'analytical-engines' } },
        placeholders: [{ kind: 'companies', external_id: 'analytical-engines' }],
        consents: [],
      },
    ],
  },
)

/** The same for a token that may not read the person or record. */
const dryRunReduced = Type.Object(dryRunIdentifiers, {
  title: 'DryRunIdentifiers',
  description: 'Returned instead of `EntityDryRun` if the token may write the person or record, but not read it.',
})

/** The response of a write with `dry_run=true`. */
export const dryRunAnswer = Type.Union([dryRunShape, dryRunReduced])

/** The response of a batch with `dry_run=true`. */
export const batchDryRunAnswer = Type.Object(
  {
    dry_run: Type.Literal(true),
    items: Type.Array(
      Type.Union([
        Type.Object(
          {
            ...batchDone.properties,
            id: nullable(text('The internal identifier. Null if the operation would create it.')),
            dry_run: dryRunAnswer,
          },
          { title: 'BatchDryRunDone' },
        ),
        batchRefused,
      ]),
    ),
    failed: count(),
  },
  {
    title: 'BatchDryRun',
    description: 'With `dry_run=true`: what the operations would do, one after the other. Nothing was stored.',
    examples: [
      {
        dry_run: true,
        items: [
          {
            index: 0,
            status: 201,
            id: null,
            external_id: 'ada',
            dry_run: {
              dry_run: true,
              result: 'created',
              id: null,
              external_id: 'ada',
              version: 1,
              before: null,
              after: { external_id: 'ada', state: 'active' },
              placeholders: [],
              consents: [],
            },
          },
          { index: 1, status: 404, error: 'not_found', message: 'There is no such person.', details: [] },
        ],
        failed: 1,
      },
    ],
  },
)
