import type { Static, TProperties, TSchema } from 'typebox'
import { answerChange } from '../consents/schema.ts'
import type { Limits } from '../process/config.ts'
import { count, flag, nullable, number, optionals, Type, text, uuid } from '../values/json-schema.ts'

const otherPerson = ({ profileCharacters }: Limits) =>
  optionals({
    from: Type.String({
      format: 'external-id',
      maxLength: profileCharacters,
      description: 'The external identifier of the other person.',
    }),
    from_id: uuid('Instead of `from`: the internal identifier of the other person.'),
    dry_run: flag('Return what would change, and change nothing. The default is false.'),
  })

export const mergeBody = (limits: Limits) =>
  Type.Object(
    {
      ...otherPerson(limits),
      keep: Type.Optional(
        Type.Record(Type.String(), Type.Enum(['survivor', 'other']), {
          description:
            'The person whose value the survivor gets, by field: a profile field, `attribute_values.<key>`, or `external_id`. The result is ' +
            'what this person has, also if that is nothing. `mobile_number` stands for the phone with its prefix. Without a choice, ' +
            "the survivor's value stays, and the other's fills an unset one.",
        }),
      ),
    },
    {
      additionalProperties: false,
      title: 'MergeBody',
      description: 'The other person of a merge, and the values that the survivor gets.',
      examples: [{ from: 'ada-newsletter', keep: { 'attribute_values.city': 'other' }, dry_run: true }],
    },
  )

export type MergeBody = Static<ReturnType<typeof mergeBody>>

export const unmergeBody = (limits: Limits) =>
  Type.Object(otherPerson(limits), {
    additionalProperties: false,
    title: 'UnmergeBody',
    description: 'The other person of an unmerge.',
    examples: [{ from: 'ada-newsletter', dry_run: true }],
  })

const personAlias = Type.Object(
  {
    kind: Type.Enum(['external_id', 'email', 'mobile']),
    value: text('The external identifier, the email in lower case, or the phone as an international number (E.164).'),
  },
  { title: 'PersonAlias', description: 'A further identifier of a person.' },
)
export type PersonAlias = Static<typeof personAlias>

/** The schema of the changes of a merge or unmerge. */
const changes = (words: Record<'moved_in' | 'moved_out' | 'dropped' | 'aliases', string>) =>
  Type.Object({
    fields: Type.Array(
      Type.Object(
        {
          path: text('A JSON Pointer into the person: `/first_name`, `/attribute_values/city`.'),
          before: Type.Unknown(),
          after: Type.Unknown(),
        },
        { title: 'FieldChange' },
      ),
      { description: 'The fields and attribute values of the survivor that change.' },
    ),
    links: Type.Object({
      moved_in: count(words.moved_in),
      moved_out: count(words.moved_out),
      dropped: count(words.dropped),
    }),
    consents: Type.Array(answerChange, { description: 'The current answers of the survivor that change.' }),
    aliases: Type.Array(personAlias, { description: words.aliases }),
  })

const keptValue = Type.Object(
  {
    path: text('A JSON Pointer into the person.'),
    reason: Type.Enum(['written_since', 'log_emptied', 'refused_by_another'], {
      description:
        'It was written since the merge, the retention of the log has removed whether it was, or another person who is still merged has refused.',
    }),
  },
  { title: 'KeptValue' },
)
export type KeptValue = Static<typeof keptValue>

const shared = {
  dry_run: flag(),
  merge_id: nullable(number('The number of the merge. Null in a dry run.')),
  completed: flag(
    'False with a status of 202 when very many links follow in the background, within seconds. Also false in a dry run of such a merge.',
  ),
  merged: Type.Object(
    { id: uuid(), external_id: nullable(text()) },
    { title: 'MergedPerson', description: 'The identifiers of the person who is merged, or returns.' },
  ),
}

const exampleChanges = {
  fields: [{ path: '/email', before: null, after: 'ada@example.com' }],
  links: { moved_in: 3, moved_out: 1, dropped: 0 },
  consents: [
    {
      consent_type_id: 1,
      channel: 'email',
      before: { state: true, pending: false, answered_at: '2026-01-01T12:00:00.000Z', person_id: null },
      after: {
        state: false,
        pending: false,
        answered_at: '2026-02-01T12:00:00.000Z',
        person_id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e50',
      },
    },
  ],
  aliases: [
    { kind: 'external_id', value: 'ada-newsletter' },
    { kind: 'email', value: 'ada@newsletter.example' },
  ],
}
const exampleMerged = { id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e50', external_id: 'ada-newsletter' }

/** The response of a merge or an unmerge. `people` are the schemas of reads, with examples. */
const answer = (title: string, of: string, changed: { changes: TSchema; example: object }, people: TProperties) =>
  Type.Object(
    { ...shared, changes: changed.changes, ...people },
    {
      title,
      description: `The outcome of ${of}, or of its dry run.`,
      examples: [
        {
          ...{ dry_run: false, merge_id: 1, completed: true, merged: exampleMerged, changes: changed.example },
          ...Object.fromEntries(Object.entries(people).map(([name, person]) => [name, exampleOf(person)])),
        },
      ],
    },
  )

/** The response of a merge. `person` is the schema of a read. */
export const mergeAnswer = (person: TSchema) => {
  const merged = changes({
    moved_in: 'The links to the merged person, which lead to the survivor now.',
    moved_out: 'The links of the merged person that the survivor has now.',
    dropped: 'The links between the two people, and those of one of them that the survivor does not keep.',
    aliases:
      'The further identifiers that lead to the survivor now, with the email and phone of the two that it does not have.',
  })
  return answer('MergeResult', 'a merge', { changes: merged, example: exampleChanges }, { person })
}

/** The response of an unmerge. */
export const unmergeAnswer = (person: TSchema) => {
  const unmerged = Type.Object({
    ...changes({
      moved_in: 'The links of others that lead to the returned person again.',
      moved_out: 'The links of the returned person.',
      dropped: 'The links of the returned person to entities that do not exist any more.',
      aliases: 'The identifiers that lead to the returned person again.',
    }).properties,
    kept: Type.Array(keptValue, { description: 'The values that the merge gave to the survivor and that stay there.' }),
  })
  const example = { ...exampleChanges, kept: [{ path: '/first_name', reason: 'written_since' }] }
  return answer('UnmergeResult', 'an unmerge', { changes: unmerged, example }, { person, unmerged: person })
}

const exampleOf = (schema: TSchema): unknown => (schema as { examples?: unknown[] }).examples?.[0]

/** The response to a token without the scope to read people. */
export const mergeIdentifiers = (title: string) =>
  Type.Object(shared, { title, description: 'Returned instead if the token lacks the scope `people:read`.' })
