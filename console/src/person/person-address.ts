import type { PersonSearch } from './search.ts'

/** The address of a person's page, for a link. Without an external identifier, the internal one is used. */
export function personAddress({ id, external_id }: { id: string; external_id: string | null }) {
  const byId = external_id === null
  return {
    to: '/people/$externalId' as const,
    params: { externalId: byId ? id : external_id },
    search: (byId ? { by: 'id' } : {}) as PersonSearch,
  }
}

type Named = { id: string; external_id: string | null; first_name: string | null; last_name: string | null }

/** A name for a heading: longer ones are clipped. */
const maxCharacters = 120

/** The name of a person, else an identifier. */
export function nameOf({ id, external_id, first_name, last_name }: Named): string {
  const name = [first_name, last_name].filter(Boolean).join(' ') || external_id || id
  return name.length > maxCharacters ? `${name.slice(0, maxCharacters)}…` : name
}
