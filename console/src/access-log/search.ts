import type { AccessEntry } from '@kith/client'
import { addressReader, oneOf, text, textLike } from '../app/search-params.ts'

const kinds = ['access', 'security'] as const satisfies AccessEntry['kind'][]
const day = textLike(/^\d{4}-\d\d-\d\d$/)

/** The entries of the page, from its address. `entity` is an internal identifier, and the days are local. */
export const validateAccessLogSearch = addressReader({
  kind: oneOf(kinds),
  subject: text,
  entity: text,
  from: day,
  to: day,
})
export type AccessLogSearch = ReturnType<typeof validateAccessLogSearch>
