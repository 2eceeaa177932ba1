/** The members of the address of a person's page, beside the identifier. */
export type PersonSearch = {
  /** The identifier in the address is the internal one. Without it, it is the external one. */
  by?: 'id'
  /** Shows the person as of this moment, RFC 3339. */
  at?: string
  /** Shows the person as of this version. */
  version?: number
  /** The other identifier that led here. */
  alias?: string
}

export function validatePersonSearch({ by, at, version, alias }: Record<string, unknown>): PersonSearch {
  return {
    ...(by === 'id' && { by }),
    ...(typeof at === 'string' && !Number.isNaN(Date.parse(at)) && { at }),
    ...(Number(version) >= 1 && at === undefined && { version: Math.floor(Number(version)) }),
    ...(typeof alias === 'string' && { alias }),
  }
}

/** Changes the moment that the page shows. Without a moment, the page shows now. */
export type SetMoment = (moment: Pick<PersonSearch, 'at' | 'version'>) => void
