import { type Change, isKithError, type Person } from '@kith/client'
import { client } from '../app/client.ts'
import type { PersonSearch } from './search.ts'

/**
 * The content of an address: a person, or the rest of one. `last` has the values from before the deletion, unless the log
 * has dropped them.
 */
export type FoundPerson =
  | { kind: 'present'; person: Person }
  | { kind: 'absent'; id: string; change: Change; last: Person | undefined }

export type PersonAddress = { identifier: string; by: PersonSearch['by'] | undefined }

const isMissing = (error: unknown) => isKithError(error, 'not_found')
const isUuid = (text: string) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)

const isMissingOrForbidden = (error: unknown) => isMissing(error) || isKithError(error, 'forbidden')

/** The result of `read`, or undefined if it is missing or this session may not read it. */
async function attempt<T>(read: () => Promise<T>, isExpected = isMissingOrForbidden): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (isExpected(error)) return undefined
    throw error
  }
}

/** Reads who is at an address. Undefined if there never was anybody. */
export async function findPerson(
  { identifier, by }: PersonAddress,
  signal: AbortSignal,
): Promise<FoundPerson | undefined> {
  if (by === 'id') {
    const person = await attempt(() => client.people.get({ id: identifier }, { signal }), isMissing)
    return person ? { kind: 'present', person: person as Person } : findAbsent(identifier, signal)
  }
  const person = await lookUp(identifier, signal)
  if (person) return { kind: 'present', person }
  const id = (await idOfDeleted(identifier, signal)) ?? (isUuid(identifier) ? identifier : undefined)
  if (id === undefined) return undefined
  return id === identifier ? findPerson({ identifier, by: 'id' }, signal) : findAbsent(id, signal)
}

const maxIdentifier = 255

/** The person with an external identifier, or with an alias. A look-up is no refusal if there is nobody, which browsers log. */
async function lookUp(external_id: string, signal: AbortSignal): Promise<Person | undefined> {
  if (external_id.length > maxIdentifier) return undefined
  const { items } = await client.people.lookup({ external_id }, { signal })
  return items[0] as Person | undefined
}

/** The last name of a deleted person leads to the first line of the dossier, which has the internal identifier. */
async function idOfDeleted(identifier: string, signal: AbortSignal): Promise<string | undefined> {
  return attempt(async () => {
    for await (const line of client.people.dossier(identifier, { signal }))
      return line.type === 'about' ? line.person.id : undefined
    return undefined
  })
}

async function findAbsent(id: string, signal: AbortSignal): Promise<FoundPerson | undefined> {
  const history = await attempt(() => client.people.history({ id }, { size: 1, signal }).page())
  const change = history?.items[0]
  if (!change) return undefined
  const { operation, version } = change
  const last =
    operation === 'erase' || version === null || version < 2
      ? undefined
      : await attempt(() => client.people.get({ id }, { version: version - 1, signal }))
  return { kind: 'absent', id, change, last: last as Person | undefined }
}
