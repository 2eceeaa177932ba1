import type { Static, TObject, TSchema } from 'typebox'
import { labels, pageSchema } from '../entities/schema.ts'
import { examplesOf } from '../organizations/definition-schema.ts'
import { closedObject, count, filledText, nullable, pageLimit, Type, text } from '../values/json-schema.ts'

export const defaultSize = 20

const position = {
  size: pageLimit(100, 'The most items of a page. The default is 20.'),
  cursor: Type.Optional(filledText(200, 'The `next_cursor` of the page before.')),
}

const searchedText = Type.String({
  maxLength: 2_000,
  description:
    'At most 8 words, and 200 characters without accents. All words must be found. A text without letters and digits finds only identifiers.',
})

/** Body of a search. The rules for the text apply after folding, so the schema only limits its length. */
export const searchBody = closedObject(
  { text: searchedText, ...position, labels },
  { title: 'SearchBody', examples: [{ text: 'ada lovlace' }] },
)
export type SearchBody = Static<typeof searchBody>

/** The maximum number of owners of one search. Each takes as long as a separate search. */
export const maxOwners = 10

/** Body of a search of people and records. */
export const ownersSearchBody = closedObject(
  {
    text: searchedText,
    owners: Type.Optional(
      Type.Array(text(), {
        minItems: 1,
        maxItems: maxOwners,
        description:
          '`people` and keys of stacks, each once, or `["*"]` for people and the stacks that the token may search: at most 10, ' +
          'those with searchable attributes first. Hits of the same rank are in the order of their owners. The default is `["people"]`.',
      }),
    ),
    ...position,
    labels,
  },
  { title: 'OwnersSearchBody', examples: [{ text: 'order-17', owners: ['people', 'orders'] }] },
)
export type OwnersSearchBody = Static<typeof ownersSearchBody>

/** An entity that a search of several owners finds. */
export function searchHitSchema({ person, record }: Record<'person' | 'record', TSchema>) {
  return Type.Object(
    {
      owner: text('`people`, or the key of the stack.'),
      entity: Type.Union([person, record]),
    },
    {
      title: 'SearchHit',
      description: 'A person or record that POST /v1/search finds.',
      examples: [{ owner: 'people', entity: examplesOf(person)[0] }],
    },
  )
}

/** The response of a search of people and records. It lists the searched owners. */
export const ownersSearchPageSchema = (hit: TSchema) =>
  searchPageSchema(hit, 'SearchPage', {
    owners: Type.Array(text(), {
      description: 'The owners that were searched.',
    }),
  })

/** The response of a search: a page in order of rank. */
export function searchPageSchema(element: TSchema, title = titleOf(element), more: Record<string, TSchema> = {}) {
  const { properties } = pageSchema(element) as TObject
  return Type.Object(
    {
      ...properties,
      next_cursor: nullable(text('The `cursor` of the next page. Null on the last page.')),
      sequence: count('The number of the last change that the search knows. Later ones may be missing.'),
      ...more,
    },
    {
      title,
      examples: [
        {
          ...{ items: examplesOf(element), has_more: false, next_cursor: null, sequence: 1 },
          ...(more.owners && { owners: ['people'] }),
        },
      ],
    },
  )
}

const titleOf = (element: TSchema) => `${(element as { title?: string }).title}SearchPage`
