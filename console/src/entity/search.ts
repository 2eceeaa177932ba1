import { addressReader, anyText, oneOf } from '../app/search-params.ts'

const moment = (at: unknown) => (typeof at === 'string' && !Number.isNaN(Date.parse(at)) ? at : undefined)
const version = (number: unknown) => (Number(number) >= 1 ? Math.floor(Number(number)) : undefined)

/** The members of the address of a person or record, beside the identifier. */
export const validateEntitySearch = addressReader({
  /** The kind of the identifier in the address. The default is `external_id` for people, and `id` for records. */
  by: oneOf(['id', 'external_id']),
  /** Shows the entity as of this moment, RFC 3339. */
  at: moment,
  /** Shows the entity as of this version, unless the address has a moment. */
  version,
  /** The other identifier of the entity that led here. */
  alias: anyText,
})
export type EntitySearch = ReturnType<typeof validateEntitySearch>

/** Changes the moment that the page shows. Without a moment, the page shows now. */
export type SetMoment = (moment: Pick<EntitySearch, 'at' | 'version'>) => void
