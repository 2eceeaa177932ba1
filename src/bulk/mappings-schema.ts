import type { Static } from 'typebox'
import { nullable, Type, text, time } from '../values/json-schema.ts'

const maxColumns = 5_000
const name = Type.String({ maxLength: 1_000 })
const owner = text('`people`, or the key of a stack.')
const header = Type.Array(name, {
  minItems: 1,
  maxItems: maxColumns,
  description: 'The names of the columns, in order.',
})
const fields = Type.Array(nullable(name), {
  minItems: 1,
  maxItems: maxColumns,
  description: 'The field of each column, as a header of CSV names it. Null leaves the column out.',
})
const example = {
  owner: 'people',
  header: ['Nr', 'Ort', 'Notiz'],
  fields: ['external_id', 'attribute_values.city', null],
}

export const mappingBody = Type.Object(
  { owner, header, fields },
  { additionalProperties: false, title: 'ImportMappingBody', examples: [example] },
)
export type MappingBody = Static<typeof mappingBody>

export const mapping = Type.Object(
  {
    id: text('It follows from the owner and the header.'),
    ...{ owner, header, fields },
    actor: text('The subject of the token that saved it.'),
    saved_at: time(),
  },
  {
    title: 'ImportMapping',
    description: 'The fields that the columns of a file became.',
    examples: [
      {
        id: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
        ...example,
        ...{ actor: 'ada', saved_at: '2026-01-01T12:00:00.000Z' },
      },
    ],
  },
)
