import type { Static } from 'typebox'
import { closedObject, count, filledText, pageLimit, Type, text } from '../../values/json-schema.ts'
import { comparisons } from '../grammar/grammar.ts'
import { evaluatedAt, warnings } from '../schema.ts'

/** The spans of time that a time or date is grouped by. */
export const timeUnits = ['day', 'week', 'month', 'quarter', 'year'] as const
export type TimeUnit = (typeof timeUnits)[number]

export const measureOperations = [
  'count',
  'count_distinct',
  'sum',
  'avg',
  'min',
  'max',
  'median',
  'percentile',
] as const
export type MeasureOperation = (typeof measureOperations)[number]

const fieldDescription =
  'A field as filters name it, or one of a target: `created_at`, `attribute_values.city`, `attribute_values.buyer.first_name`.'

const span = closedObject(
  {
    field: text('A time or a date, of the entity or of a target.'),
    by: Type.Enum([...timeUnits], { description: 'The span of time. The key of a group is its first day.' }),
    time_zone: Type.Optional(
      filledText(64, "The IANA time zone in which the days of a time begin, such as `Europe/Berlin`. Default: 'UTC'."),
    ),
  },
  { title: 'AggregateSpan' },
)

const measure = closedObject(
  {
    op: Type.Enum([...measureOperations]),
    field: Type.Optional(text(`${fieldDescription} Only \`count\` needs none.`)),
    p: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'Only for `percentile`: the part of the values below the result. 0.5 is the median.',
      }),
    ),
  },
  { title: 'AggregateMeasure' },
)

const place = (of: string) => count(`The position of an element of \`${of}\`. The first is 0.`)

const order = closedObject(
  {
    measure: Type.Optional(place('measures')),
    group: Type.Optional(place('group_by')),
    direction: Type.Optional(
      Type.Enum(['asc', 'desc'], { description: "Groups without a value come last in both. Default: 'asc'." }),
    ),
  },
  { title: 'AggregateSort' },
)

const having = closedObject(
  {
    measure: place('measures'),
    ...Object.fromEntries(comparisons.map(operator => [operator, Type.Optional(Type.Unknown())])),
  },
  { title: 'AggregateHaving' },
)

/** An answer in JSON has at most this many groups. */
export const maxGroups = 10_000
/** The maximum number of groups of a stream: PostgreSQL counts them with an integer. */
const maxStreamedGroups = 2_147_483_647

/** Body of the aggregate endpoints. The schema leaves the filter itself open: `parseFilter` checks it. */
export const aggregateBody = closedObject(
  {
    filter: Type.Optional(
      Type.Record(text(), Type.Unknown(), { description: 'The entities to aggregate. Absent: all.' }),
    ),
    group_by: Type.Optional(
      Type.Array(Type.Union([text(), span]), {
        maxItems: 2,
        description: `Up to two fields, or spans of time. ${fieldDescription}`,
      }),
    ),
    measures: Type.Optional(
      Type.Array(measure, {
        minItems: 1,
        maxItems: 10,
        description: "The measures of each group. Default: [{op: 'count'}].",
      }),
    ),
    having: Type.Optional(
      Type.Array(having, {
        minItems: 1,
        maxItems: 10,
        description: 'Keeps the groups whose measures pass all tests. A test has the operators of a filter.',
      }),
    ),
    sort: Type.Optional(
      Type.Array(order, {
        minItems: 1,
        maxItems: 12,
        description: 'The order of the groups, by a `measure` or a `group` each. Last comes the order of their values.',
      }),
    ),
    limit: pageLimit(
      maxStreamedGroups,
      'The number of groups to keep, in that order: at most 10,000, or any number as `application/x-ndjson`.',
    ),
  },
  { title: 'AggregateBody', examples: [{ group_by: ['state'], measures: [{ op: 'count' }] }] },
)
export type AggregateBody = Static<typeof aggregateBody>
export type GroupBy = NonNullable<AggregateBody['group_by']>[number]
export type Measure = NonNullable<AggregateBody['measures']>[number]
export type SortEntry = NonNullable<AggregateBody['sort']>[number]
export type Having = NonNullable<AggregateBody['having']>[number]

const group = Type.Object(
  {
    by: Type.Array(Type.Unknown(), {
      description:
        'The values of the fields in `group_by`, in its order. Null: no value. A span of time is its first day.',
    }),
    measures: Type.Array(Type.Union([Type.Number(), text(), Type.Null()]), {
      description: 'The results of `measures`, in its order. Numbers are exact. Null: no value was measured.',
    }),
  },
  { title: 'AggregateGroup' },
)

const findings = {
  skipped: Type.Array(
    Type.Object({
      path: text('A JSON Pointer to the measure or the field in the body.'),
      values: Type.Integer({ minimum: 1, description: 'The number of values that are not of the type.' }),
    }),
    { description: 'Values of another type than the attribute: they were stored before its declaration.' },
  ),
  sequence: count('The number of the last change that the result includes.'),
  evaluated_at: evaluatedAt,
  warnings: Type.Optional(warnings),
}

/** A line of the stream of an aggregate: a group or, at the end, the findings about all groups. */
export const aggregateLine = Type.Union([group, Type.Object(findings, { title: 'AggregateEnd' })], {
  title: 'AggregateLine',
  description: 'A line of a stream of groups: a group, or at the end what was counted.',
})

/** The response of the aggregate endpoints. */
export const aggregateAnswer = Type.Object(
  {
    groups: Type.Array(group, { description: 'In the order of `sort`, else of their values, nulls last.' }),
    ...findings,
  },
  {
    title: 'Aggregate',
    description: 'The groups of an aggregate. Numbers beyond 2^53 lose digits in JSON.parse.',
    examples: [{ groups: [{ by: ['active'], measures: [3] }], skipped: [], sequence: 12 }],
  },
)
