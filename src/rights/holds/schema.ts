import type { Static } from 'typebox'
import {
  closedObject,
  nullable,
  number,
  optionals,
  pageOf,
  storedNumber,
  Type,
  text,
  time,
  uuid,
} from '../../values/json-schema.ts'

const until = nullable(time('When the hold ends by itself. Null: when somebody ends it.'))

/** Body of the hold of a person. */
export const holdBody = Type.Object(
  {
    reason: Type.String({
      minLength: 1,
      maxLength: 2_000,
      description: 'Why the data must stay. The change log keeps it, so it must not name the person.',
    }),
    until: Type.Optional(until),
  },
  { additionalProperties: false, title: 'HoldBody', examples: [{ reason: 'Case 2026-17', until: null }] },
)
export type HoldBody = Static<typeof holdBody>

const example = {
  id: 1,
  people: [{ id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', external_id: 'ada' }],
  reason: 'Case 2026-17',
  until: null,
  actor: 'privacy desk',
  created_at: '2026-01-01T12:00:00.000Z',
}

/** A hold as reads show it. */
export const hold = Type.Object(
  {
    id: number(),
    people: Type.Array(Type.Object({ id: uuid(), external_id: nullable(text()) }), {
      description: 'The person. More than one after a merge was undone: each of them is held.',
    }),
    reason: text(),
    until,
    actor: text('The subject of the token that held the person.'),
    created_at: time(),
  },
  {
    title: 'Hold',
    description: 'A legal hold: the person is not erased by a rule, nor by hand without `override_hold`.',
    examples: [example],
  },
)
export type HoldShape = Static<typeof hold>

/** The query of the list of holds. */
export const holdsQuery = closedObject(
  optionals({
    after: storedNumber('Only holds after this id.'),
    person: uuid('Only the holds of the person with this internal identifier.'),
    limit: Type.Integer({ minimum: 1, maximum: 500, description: 'The default is 50.' }),
  }),
)
export type HoldsQuery = Static<typeof holdsQuery>

/** A page of holds. */
export const holdPage = pageOf(hold, 'HoldPage', 'A page of the holds that are in force.', [example])
