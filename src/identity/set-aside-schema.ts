import type { Static } from 'typebox'
import type { Limits } from '../process/config.ts'
import { closedObject, flag, nullable, optionals, Type, text, time, uuid } from '../values/json-schema.ts'

/** The maximum number of people that a page of duplicates shows of a group. One request can set that many aside. */
export const maxPeoplePerGroup = 100

/** Body of POST /v1/people/duplicates/set-aside. */
export const setAsideBody = ({ profileCharacters }: Limits) => {
  const people = { minItems: 2, maxItems: maxPeoplePerGroup }
  const name = Type.String({ format: 'external-id', maxLength: profileCharacters })
  return Type.Object(
    optionals({
      external_ids: Type.Array(name, { ...people, description: 'The external identifiers of the people.' }),
      ids: Type.Array(uuid(), {
        ...people,
        description: 'Instead of `external_ids`: the internal identifiers of the people.',
      }),
    }),
    {
      additionalProperties: false,
      title: 'SetAsideBody',
      description: 'People of whom no two are the same.',
      examples: [{ external_ids: ['ada', 'newsletter-17'] }],
    },
  )
}
export type SetAsideBody = Static<ReturnType<typeof setAsideBody>>

const identifiers = { id: uuid(), external_id: nullable(text()) }
const shared = {
  id: uuid('By this the set-aside is taken back.'),
  actor: text('The subject of the token that set them aside.'),
  at: time(),
}
const example = {
  id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e60',
  actor: 'help desk',
  at: '2026-01-01T12:00:00.000Z',
  people: [
    { id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e40', external_id: 'ada' },
    { id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e41', external_id: 'newsletter-17' },
  ],
}

const exampleNames = { first_name: 'Ada', last_name: null, email: 'ada@example.com' }
const examplePeople = example.people.map(person => ({ ...person, ...exampleNames }))

export const setAside = Type.Object(
  { ...shared, people: Type.Array(Type.Object(identifiers)) },
  { title: 'SetAside', description: 'People who were set aside: no two of them are the same.', examples: [example] },
)

export const setAsidesQuery = closedObject(
  optionals({
    before: uuid('Only set-asides older than the one with this id.'),
    limit: Type.Integer({ minimum: 1, maximum: 100, description: 'The default is 20.' }),
  }),
)
export type SetAsidesQuery = Static<typeof setAsidesQuery>

const names = { first_name: nullable(text()), last_name: nullable(text()), email: nullable(text()) }

const listedSetAside = Type.Object(
  {
    ...shared,
    people: Type.Array(Type.Object({ ...identifiers, ...names }), {
      description: 'The people to whom the identifiers lead now. Deleted ones are left out until they are restored.',
    }),
  },
  { title: 'ListedSetAside' },
)
export type ListedSetAside = Static<typeof listedSetAside>

export const setAsidePage = Type.Object(
  { items: Type.Array(listedSetAside), has_more: flag() },
  {
    title: 'SetAsidePage',
    description: 'A page of set-asides, the newest first.',
    examples: [{ items: [{ ...example, people: examplePeople }], has_more: false }],
  },
)
