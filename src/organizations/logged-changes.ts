/** The kinds of things that change, in the order of the documentation. */
export const subjects = [
  'person',
  'record',
  'stack',
  'attribute',
  'consent_type',
  'webhook',
  'settings',
  'segment',
  'retention_rule',
  'hold',
  'role',
] as const
export type Subject = (typeof subjects)[number]

const person = ['person'] as const
const both = ['person', 'record'] as const

/** The operations of changes, each with the name of its event, its meaning, and its subjects, if not all have it. */
const operationTable = {
  create: { event: 'created', description: 'It was created.' },
  update: {
    event: 'updated',
    description: 'Some of its fields were changed. A new text of a consent type is an update.',
  },
  delete: { event: 'deleted', description: 'It was deleted.' },
  restore: { event: 'restored', description: 'A deleted person or record came [back](history.md#restore).', of: both },
  merge: { event: 'merged', description: 'The person was [merged](identity.md#merge) into another one.', of: person },
  unmerge: { event: 'unmerged', description: 'The person is separate from the other one again.', of: person },
  erase: { event: 'erased', description: 'The person or record was [erased](rights.md#erasure).', of: both },
  retention_due: {
    event: 'retention_due',
    description:
      'A [retention rule](lifetimes.md) will erase or delete the person in a week. Nothing of the person changed.',
    of: person,
  },
} as const satisfies Record<string, { event: string; description: string; of?: readonly Subject[] }>

export type Operation = keyof typeof operationTable
export type ChangeEvent = (typeof operationTable)[Operation]['event']

/** The operations, in the order of the documentation. */
export const operations = Object.keys(operationTable) as Operation[]

/** The event of each operation, such as `created` of a `create`, and its meaning. */
export const operationFacts: Readonly<
  Record<Operation, { event: ChangeEvent; description: string; of?: readonly Subject[] }>
> = operationTable

export const eventsOf = (subject: Subject) =>
  operations
    .map(operation => ({ operation, ...operationFacts[operation] }))
    .filter(({ of = subjects }) => of.includes(subject))
