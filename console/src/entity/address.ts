import type { Definitions } from '@kith/client'
import type { EntitySearch } from './search.ts'

/**
 * The address of the page of a person or record, for a link. It has the external identifier of a person, as in other
 * systems. It has the internal identifier of a record, which never changes, if this is known.
 */
export function entityAddress(
  owner: string,
  { id, externalId }: { id?: string | undefined; externalId: string | null },
) {
  if (owner === 'people')
    return {
      to: '/people/$externalId' as const,
      params: { externalId: externalId ?? id ?? '' },
      search: (externalId === null ? { by: 'id' } : {}) as EntitySearch,
    }
  return {
    to: '/records/$stackKey/$recordId' as const,
    params: { stackKey: owner, recordId: id ?? externalId ?? '' },
    search: (id === undefined ? { by: 'external_id' } : {}) as EntitySearch,
  }
}

/** The members that form a name. */
export type Named = {
  id?: string
  record_id?: string
  external_id: string | null
  first_name?: unknown
  last_name?: unknown
  label?: string | undefined
}

/** Longer names are clipped for a heading. */
const maxCharacters = 120

/** The label, else the name of a person, else an identifier. */
export function nameOf({ id, record_id, external_id, first_name, last_name, label }: Named): string {
  const name = label || [first_name, last_name].filter(Boolean).join(' ') || external_id || id || record_id || ''
  return name.length > maxCharacters ? `${name.slice(0, maxCharacters)}…` : name
}

/** The name of a stack, or the given word for people. A session without the schema knows only the key of a stack. */
export const ownerName = (owner: string, definitions: Definitions | undefined, people: string): string =>
  owner === 'people' ? people : (definitions?.stacks.find(({ key }) => key === owner)?.name ?? owner)
