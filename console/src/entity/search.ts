import { addressReader, anyText, oneOf } from '../app/search-params.ts'

const moment = (at: unknown) => (typeof at === 'string' && !Number.isNaN(Date.parse(at)) ? at : undefined)
const version = (number: unknown) => (Number(number) >= 1 ? Math.floor(Number(number)) : undefined)

/** The members of the address of a person or record, beside the identifier. */
export const validateEntitySearch = addressReader({
  /** What the identifier in the address is. Without it, it is the external one of a person, or the internal one of a record. */
  by: oneOf(['id', 'external_id']),
  /** Shows the entity as of this moment, RFC 3339. */
  at: moment,
  /** Shows the entity as of this version, unless the address has a moment. */
  version,
  /** The other identifier that led here. */
  alias: anyText,
})
export type EntitySearch = ReturnType<typeof validateEntitySearch>

/** Changes the moment that the page shows. Without a moment, the page shows now. */
export type SetMoment = (moment: Pick<EntitySearch, 'at' | 'version'>) => void
