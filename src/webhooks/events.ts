import { readScopes as subjectScopes } from '../changes/selection.ts'
import { pointer } from '../errors.ts'
import { throwInvalidField } from '../organizations/change-definitions.ts'
import { type Definitions, peopleStackId } from '../organizations/definitions.ts'
import { profileFlags, profileTexts } from '../profile-fields.ts'

/** The subjects of events with the scope that reads them. */
const readScopes = { ...subjectScopes, consent: subjectScopes.person }

type Subject = keyof typeof readScopes

const operationsByEvent = {
  created: 'create',
  updated: 'update',
  deleted: 'delete',
  restored: 'restore',
  merged: 'merge',
  unmerged: 'unmerge',
  erased: 'erase',
} as const
type Event = keyof typeof operationsByEvent

/** What happens to a subject, in the names of events. */
export const allEvents = Object.keys(operationsByEvent) as Event[]

/** The subjects in the names of events. */
export const eventSubjects = Object.keys(readScopes) as Subject[]

/** An event, such as `person.updated`, or all of a subject, `person.*`. */
export const eventPattern = `^(${eventSubjects.join('|')})\\.(\\*|${allEvents.join('|')})$`

/** The scopes that read what the events tell of. */
export const scopesOf = (events: readonly string[]) =>
  new Set(events.map(event => readScopes[event.split('.')[0] as Subject]))

/** The changes that a webhook asks for. */
export type Wanted = { events: string[]; stacks: string[] | null; keys: string[] | null }

const attributePrefix = 'attribute_values.'

/** The values of `match_changes` from $4 on. */
export function matchValuesOf({ events, stacks, keys }: Wanted) {
  const named = events.map(event => event.split('.') as [Subject, Event | '*'])
  const each = named.flatMap(([subject, event]) => (event === '*' ? allEvents : [event]).map(one => ({ subject, one })))
  const types = each.filter(({ subject }) => subject !== 'consent').map(({ subject, one }) => `${subject}.${one}`)
  const consents = each.filter(({ subject }) => subject === 'consent').map(({ one }) => operationsByEvent[one])
  const attributes = keys?.filter(key => key.startsWith(attributePrefix)).map(key => key.slice(attributePrefix.length))
  return [types, consents, stacks, keys, attributes ?? []] as const
}

const profileFields: readonly string[] = [...profileTexts, ...profileFlags, 'consents']
const sharedFields = ['external_id', 'state', 'attribute_values']

/** Throws 400 for a stack or a field that the organization does not have. */
export function throwIfUnknown({ stacks, keys }: Wanted, definitions: Definitions): void {
  const wanted = definitions.stacks.filter(({ key }) => stacks === null || stacks.includes(key))
  const stackKeys = new Set(wanted.map(({ key }) => key))
  const unknownStack = stacks?.findIndex(key => !stackKeys.has(key)) ?? -1
  if (unknownStack !== -1) throwInvalidField(pointer('stacks', unknownStack), 'is not the key of a stack')
  const owners = [peopleStackId, ...wanted.map(({ id }) => id)]
  const isField = (key: string) =>
    key.startsWith(attributePrefix)
      ? owners.some(owner => definitions.declared.get(owner)?.has(key.slice(attributePrefix.length)))
      : profileFields.includes(key) || sharedFields.includes(key)
  const unknownKey = keys?.findIndex(key => !isField(key)) ?? -1
  if (unknownKey !== -1)
    throwInvalidField(
      pointer('keys', unknownKey),
      'is not a field of people or records, nor attribute_values. with the key of an attribute',
    )
}
