import type { Static } from 'typebox'
import { closedObject, flag, nullable, optionals, Type, text, time, uuid } from '../values/json-schema.ts'
import { sharedKeys } from './duplicates-sql.ts'

const sharedKey = Type.Enum([...sharedKeys])

/** Body of POST /v1/people/duplicates. */
export const duplicatesBody = Type.Object(
  optionals({
    by: Type.Array(sharedKey, {
      minItems: 1,
      maxItems: 3,
      description:
        'The keys that people of a group share: `email`, `mobile` (the phone number in E.164), or `name` (first name, last name and date of birth). All by default.',
    }),
    cursor: Type.String({ minLength: 1, maxLength: 4_096, description: 'The `next_cursor` of the page before.' }),
    size: Type.Integer({ minimum: 1, maximum: 100, description: 'The most groups of a page. The default is 20.' }),
  }),
  { additionalProperties: false, title: 'DuplicatesBody', examples: [{ by: ['email'], size: 20 }] },
)
export type DuplicatesBody = Static<typeof duplicatesBody>

export const defaultSize = 20

const textOrNull = nullable(text())

const duplicate = Type.Object({
  id: uuid(),
  external_id: textOrNull,
  first_name: textOrNull,
  last_name: textOrNull,
  email: textOrNull,
  mobile_prefix: textOrNull,
  mobile_number: textOrNull,
  date_of_birth: textOrNull,
  created_at: time(),
  updated_at: time(),
})

const reasons = (description: string) => Type.Array(Type.Object({ by: sharedKey, value: text() }), { description })

/** A group of people who may be the same person. */
const duplicateGroup = Type.Object(
  {
    people: Type.Array(duplicate, { description: 'The first 100 people, in order of their `id`: the oldest first.' }),
    size: Type.Integer({ minimum: 2, description: 'The number of people of the group.' }),
    score: Type.Number({
      minimum: 0,
      maximum: 1,
      description:
        'How likely it is that they are one person: 0.95 for a shared email, 0.9 for a phone number, 0.7 for name and date of birth. ' +
        'Several keys that all of them share add up: 1 − (1 − a)(1 − b).',
    }),
    why: reasons('The keys that all people of the group share.'),
  },
  { title: 'DuplicateGroup', description: 'A group of people who may be one.' },
)
export const duplicatesOfQuery = closedObject({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'The default is 20.' })),
})
export type DuplicatesOfQuery = Static<typeof duplicatesOfQuery>

const duplicateOf = Type.Object(
  {
    person: duplicate,
    score: Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'How likely it is that they are one person, as in a group.',
    }),
    why: reasons('The keys that the two share.'),
  },
  { title: 'DuplicateOf', description: 'A person who may be the same as another one.' },
)
export type DuplicateOf = Static<typeof duplicateOf>

export type DuplicateGroup = Static<typeof duplicateGroup>

const examplePeople = ['ada', 'newsletter-77'].map((external_id, index) => ({
  id: `01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4${index}`,
  external_id,
  first_name: 'Ada',
  last_name: null,
  email: 'ada@example.com',
  mobile_prefix: null,
  mobile_number: null,
  date_of_birth: null,
  created_at: '2026-01-01T12:00:00.000Z',
  updated_at: '2026-01-01T12:00:00.000Z',
}))
const exampleReasons = { score: 0.95, why: [{ by: 'email', value: 'ada@example.com' }] }

/** The response with the possible duplicates of one person. */
export const duplicatesOf = Type.Object(
  { items: Type.Array(duplicateOf) },
  { title: 'DuplicatesOf', examples: [{ items: [{ person: examplePeople[1], ...exampleReasons }] }] },
)

/** A page of duplicates. */
export const duplicatesPage = Type.Object(
  {
    items: Type.Array(duplicateGroup),
    has_more: flag(
      'Whether the search goes on after this page. A page may have fewer groups than asked for, even none, before the end.',
    ),
    next_cursor: nullable(text('The `cursor` of the next page. Null at the end.')),
  },
  {
    title: 'DuplicatesPage',
    examples: [{ items: [{ people: examplePeople, size: 2, ...exampleReasons }], has_more: false, next_cursor: null }],
  },
)
