import type { Static } from 'typebox'
import { definitionKey, listSchema, times } from '../../organizations/definition-schema.ts'
import { count, flag, nullable, number, optionals, Type, text, time, uuid } from '../../values/json-schema.ts'

const segment = { ...definitionKey, description: 'The key of the segment.' }
const afterDays = Type.Integer({
  minimum: 1,
  maximum: 36_500,
  description: 'How long a person has been in the segment, without a break.',
})
const action = Type.Enum(['erase', 'delete'], {
  description: '`erase` takes all data, with a certificate. `delete` can be undone by a restore.',
})
const dailyLimit = Type.Integer({
  minimum: 1,
  maximum: 100_000,
  description: 'The most people of a day in UTC. The default is 1,000.',
})
const active = Type.Boolean({ description: 'Whether the rule works. The default is false.' })

/** Body of POST /v1/retention-rules. */
export const newRule = Type.Object(
  {
    key: Type.Optional({ ...definitionKey, description: 'The default is the key of the segment.' }),
    segment,
    after_days: afterDays,
    action,
    ...optionals({ daily_limit: dailyLimit, active }),
  },
  {
    additionalProperties: false,
    title: 'RetentionRuleBody',
    examples: [{ segment: 'your_segment', after_days: 1_095, action: 'erase' }],
  },
)
export type RuleBody = Static<typeof newRule>

/** Body of PATCH /v1/retention-rules/{id}. */
export const rulePatch = Type.Object(
  optionals({ key: definitionKey, segment, after_days: afterDays, action, daily_limit: dailyLimit, active }),
  { additionalProperties: false, title: 'RetentionRulePatch', examples: [{}] },
)
export type RulePatch = Static<typeof rulePatch>

const example = {
  id: 1,
  key: 'gone',
  segment: 'gone',
  after_days: 1_095,
  action: 'erase',
  daily_limit: 1_000,
  active: true,
  paused: null,
  today: { told: 12, done: 7 },
  created_at: '2026-01-01T12:00:00.000Z',
  updated_at: '2026-01-01T12:00:00.000Z',
}

/** A rule as reads show it. */
export const rule = Type.Object(
  {
    id: number(),
    key: text(),
    segment: nullable(text('Null if the segment was deleted.')),
    after_days: afterDays,
    action,
    daily_limit: dailyLimit,
    active: Type.Boolean(),
    paused: nullable(
      Type.Object({
        reason: Type.Literal('too_many'),
        message: text('The reason in words, and how to go on.'),
        at: time(),
      }),
    ),
    today: Type.Object({
      told: count('The people of whom `person.retention_due` told today.'),
      done: count('The people who were erased or deleted today.'),
    }),
    ...times,
  },
  {
    title: 'RetentionRule',
    description:
      'A rule that erases or deletes people. `paused` says why it has stopped itself, and is null unless it has.',
    examples: [example],
  },
)
export type RuleShape = Static<typeof rule>

/** The response of GET /v1/retention-rules. */
export const ruleList = listSchema(rule)

/** The response of a preview. */
export const preview = Type.Object(
  {
    count: count('The people who have been in the segment for long enough today and are not held.'),
    held: count('The people who have, and are held.'),
    daily_limit: dailyLimit,
    would_pause: flag(
      'Whether the rule would stop itself, because it would take more than a tenth of all people in a day.',
    ),
    items: Type.Array(
      Type.Object({
        id: uuid(),
        external_id: nullable(text()),
        entered_at: time('Since when the person has been in the segment, as far as it is known.'),
        due_at: time('When the time of the rule was over.'),
        announced_for: nullable(
          time('From when the rule erases or deletes the person. Null until `person.retention_due` has told of it.'),
        ),
      }),
      { description: 'The first 1,000 of them, who have been in the segment for the longest time first.' },
    ),
  },
  {
    title: 'RetentionPreview',
    description: 'The people whom the rule would erase or delete today.',
    examples: [
      {
        count: 1,
        held: 0,
        daily_limit: 1_000,
        would_pause: false,
        items: [
          {
            id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
            external_id: 'ada',
            entered_at: '2023-01-01T12:00:00.000Z',
            due_at: '2025-12-31T12:00:00.000Z',
            announced_for: null,
          },
        ],
      },
    ],
  },
)

export type PreviewItem = Static<typeof preview>['items'][number]

/** The response of the runs of a rule. */
export const runList = listSchema(
  Type.Object(
    {
      day: Type.String({ format: 'date', description: 'The day in UTC.' }),
      told: count('The people of whom `person.retention_due` told.'),
      done: count('The people who were erased or deleted.'),
      updated_at: time(),
    },
    {
      title: 'RetentionRun',
      examples: [{ day: '2026-01-01', told: 12, done: 7, updated_at: '2026-01-01T12:00:00.000Z' }],
    },
  ),
)
