import { readScopes as subjectScopes } from '../changes/selection.ts'
import type { Definitions } from '../organizations/definitions.ts'
import { type ChangeEvent, type Operation, operationFacts, operations } from '../organizations/logged-changes.ts'
import { pointer, throwBrokenRule } from '../values/errors.ts'
import { attributePrefix, profileFlags, profileTexts } from '../values/profile-fields.ts'

const readScopes = { ...subjectScopes, consent: subjectScopes.person }

type Subject = keyof typeof readScopes

/** The kinds of events, such as `created` in `person.created`. */
export const allEvents = operations.map(operation => operationFacts[operation].event)

/** The type of the event of a change, such as `person.updated`. */
export const eventTypeOf = (subject: Subject, operation: Operation) => `${subject}.${operationFacts[operation].event}`

/** The subjects in the names of events. */
export const eventSubjects = Object.keys(readScopes) as Subject[]

/** The pattern of an event, such as `person.updated`, or of all events of a subject, `person.*`. */
export const eventPattern = `^(${eventSubjects.join('|')})\\.(\\*|${allEvents.join('|')})$`

/** The scopes that the subjects of the events need. */
export const scopesOf = (events: readonly string[]) =>
  new Set(events.map(event => readScopes[event.split('.')[0] as Subject]))

/** The changes that a webhook asks for. */
export type Wanted = { events: string[]; stacks: string[] | null; keys: string[] | null }

/** The values of `match_changes`, starting with $4. */
export function matchValuesOf({ events, stacks, keys }: Wanted) {
  const wanted = events.flatMap(name => {
    const [subject, event] = name.split('.') as [Subject, ChangeEvent | '*']
    const named = operations.filter(operation => event === '*' || operationFacts[operation].event === event)
    return named.map(operation => ({ subject, operation }))
  })
  const types = wanted.filter(({ subject }) => subject !== 'consent')
  const consents = wanted.filter(({ subject }) => subject === 'consent')
  const attributes = keys?.filter(key => key.startsWith(attributePrefix)).map(key => key.slice(attributePrefix.length))
  return [
    types.map(({ subject, operation }) => `${subject}.${operation}`),
    consents.map(({ operation }) => operation),
    ...[stacks, keys, attributes ?? []],
  ] as const
}

const profileFields: readonly string[] = [...profileTexts, ...profileFlags, 'consents']
const sharedFields = ['external_id', 'state', 'attribute_values']

/** An attribute may be undeclared: a write may bring any key. */
const isField = (key: string) =>
  key.startsWith(attributePrefix)
    ? key.length > attributePrefix.length
    : profileFields.includes(key) || sharedFields.includes(key)

/** Throws 400 for a stack that the organization does not have, or a field that no entity has. */
export function throwIfUnknown({ stacks, keys }: Wanted, definitions: Definitions): void {
  const stackKeys = new Set(definitions.stacks.map(({ key }) => key))
  const unknownStack = stacks?.findIndex(key => !stackKeys.has(key)) ?? -1
  if (unknownStack !== -1) throwBrokenRule(pointer('stacks', unknownStack), 'is not the key of a stack')
  const unknownKey = keys?.findIndex(key => !isField(key)) ?? -1
  if (unknownKey !== -1)
    throwBrokenRule(
      pointer('keys', unknownKey),
      'is not a field of people or records, nor attribute_values. with a key',
    )
}
