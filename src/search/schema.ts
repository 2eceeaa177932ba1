import type { Static, TObject, TSchema } from 'typebox'
import { labels, pageSchema } from '../entities/schema.ts'
import { Type } from '../json-schema.ts'
import { examplesOf, nullable } from '../organizations/definition-schema.ts'

export const defaultSize = 20

/** Body of a search. The rules for the text follow after folding, so the schema only bounds it. */
export const searchBody = Type.Object(
  {
    text: Type.String({
      minLength: 1,
      maxLength: 2_000,
      description: 'At most 8 words, and 200 characters without accents. All words must be found.',
    }),
    size: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, description: 'The most items of a page. The default is 20.' }),
    ),
    labels,
    cursor: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'The `next_cursor` of the page before.' }),
    ),
  },
  { additionalProperties: false, title: 'SearchBody', examples: [{ text: 'ada lovlace' }] },
)
export type SearchBody = Static<typeof searchBody>

/** The response of a search: a page in order of rank. */
export function searchPageSchema(element: TSchema) {
  const { properties } = pageSchema(element) as TObject
  const { title } = element as { title?: string }
  return Type.Object(
    {
      ...properties,
      next_cursor: nullable(Type.String({ description: 'The `cursor` of the next page. Null on the last page.' })),
      sequence: Type.Integer({
        minimum: 0,
        description: 'The number of the last change that the search knows. Later ones may be missing.',
      }),
    },
    {
      ...(title && { title: `${title}SearchPage` }),
      examples: [{ items: examplesOf(element), has_more: false, next_cursor: null, sequence: 1 }],
    },
  )
}
