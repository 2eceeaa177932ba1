import type { TSchema } from 'typebox'
import { filledText, nullable, number, Type, text, time } from '../values/json-schema.ts'
import { type DefinitionSubject, definitionOperations } from './change-organization.ts'
import { type Subject, subjects } from './logged-changes.ts'

/** The keys of stacks, attributes and consent types. */
export const definitionKey = Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$' })
export const definitionName = filledText(255)
export const definitionDescription = nullable(Type.String({ maxLength: 2_000 }))
export const definitionState = Type.Enum(['active', 'archived'])

/** The times of creation and of the last change: RFC 3339, UTC, milliseconds. */
export const times = {
  created_at: time(),
  updated_at: time(),
}

/** The response of an endpoint that lists all definitions of a kind. */
export const listSchema = <T extends TSchema>(element: T) =>
  Type.Object(
    { items: Type.Array(element) },
    { title: `${(element as { title?: string }).title}List`, examples: [{ items: examplesOf(element) }] },
  )

/** The examples of a schema. */
export const examplesOf = (schema: TSchema): unknown[] => (schema as { examples?: unknown[] }).examples ?? []

const definitionSubjects = subjects.filter(
  (subject: Subject): subject is DefinitionSubject => !['person', 'record'].includes(subject),
)

const values = (description: string) => Type.Record(text(), Type.Unknown(), { description })

export const definitionDryRun = Type.Object(
  {
    dry_run: Type.Literal(true),
    changes: Type.Array(
      Type.Object({
        subject: Type.Enum(definitionSubjects),
        id: nullable(number('Null for a creation.')),
        operation: Type.Enum([...definitionOperations]),
        before: values('The fields that would change, with their values before.'),
        after: values('The fields that would change, with their values after.'),
      }),
      { description: 'The entries that the change log would get. None if nothing would change.' },
    ),
  },
  {
    title: 'DefinitionDryRun',
    description: 'With `dry_run=true`: what the write would change. Nothing was stored.',
    examples: [
      {
        dry_run: true,
        changes: [
          { subject: 'stack', id: null, operation: 'create', before: {}, after: { key: 'orders', name: 'Orders' } },
        ],
      },
    ],
  },
)
