/** The members of the address of a person or record, beside the identifier. */
export type EntitySearch = {
  /** What the identifier in the address is. Without it, it is the external one of a person, or the internal one of a record. */
  by?: 'id' | 'external_id'
  /** Shows the entity as of this moment, RFC 3339. */
  at?: string
  /** Shows the entity as of this version. */
  version?: number
  /** The other identifier that led here. */
  alias?: string
}

export function validateEntitySearch({ by, at, version, alias }: Record<string, unknown>): EntitySearch {
  return {
    ...((by === 'id' || by === 'external_id') && { by }),
    ...(typeof at === 'string' && !Number.isNaN(Date.parse(at)) && { at }),
    ...(Number(version) >= 1 && at === undefined && { version: Math.floor(Number(version)) }),
    ...(typeof alias === 'string' && { alias }),
  }
}

/** Changes the moment that the page shows. Without a moment, the page shows now. */
export type SetMoment = (moment: Pick<EntitySearch, 'at' | 'version'>) => void
