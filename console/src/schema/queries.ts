import { client, pagedQuery, readQuery } from '../app/client.ts'

export const settingsQuery = readQuery(['settings'], options => client.schema.settings(options))

/** The keys that values of an owner have without a declaration. */
export const observedQuery = (owner: string) =>
  readQuery(['schema', 'observed', owner], options => client.schema.observed(owner, options))

/** The texts of a purpose, oldest first. */
export const consentTextsQuery = (id: number) =>
  pagedQuery(['consent-texts', id], at => client.schema.consentTypes.texts(id, { size: 100, ...at }).page())
