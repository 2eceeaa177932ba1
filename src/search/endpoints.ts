import type { EntityKind } from '../entities/entity-kind.ts'
import type { Call } from '../route/call.ts'
import type { Route } from '../route/route.ts'
import { searchEntities } from './handlers.ts'
import { type SearchBody, searchBody, searchPageSchema } from './schema.ts'

const ranking =
  'All words of the text must be found: exactly, as the beginning of a word, or with typos. Case and accents do not count. Who has the ' +
  'text as identifier comes first, then who has all words exactly, then beginnings, then similar words with the fewest typos. Equal ' +
  'ranks are in order of their identifiers.'

const searched = {
  person: 'Finds people by their names, email, phone, external identifier and aliases, and by searchable attributes.',
  record:
    'Finds records by their external identifier and the attributes declared `searchable`; 400 if the stack has none.',
}

/** The endpoint that finds entities of a kind by words. */
export function searchEndpoints({ path, params, noun, plural, reads, answer, stackOf }: EntityKind): Route[] {
  return [
    {
      method: 'POST',
      path: `${path}/search`,
      params,
      scope: reads,
      fields: 'shown',
      prefersReader: true,
      operationId: `search${plural}`,
      summary: `Search ${plural.toLowerCase()}`,
      tag: plural,
      description: `${searched[noun]} ${ranking} kith indexes words after the writes: \`sequence\` is the number of the last change that the search includes. While an index is being built, the response is 503.`,
      body: searchBody,
      answer: searchPageSchema(answer),
      refusals: { 503: 'operation_failed' },
      handle: async call => searchEntities(call as Call<SearchBody>, await stackOf(call)),
    },
  ]
}
