import type { Operation } from '../changes/schema.ts'
import { type Subject, subjects } from '../changes/schema.ts'
import type { Call, HandlerResult, Route, route } from '../http/pipeline/route.ts'
import { nullable, Type } from '../json-schema.ts'

/** The subjects of the writes of definitions. */
type DefinitionSubject = Exclude<Subject, 'person' | 'record'>

const definitionSubjects = subjects.filter(
  (subject): subject is DefinitionSubject => !['person', 'record'].includes(subject),
)

/** What happens to definitions. */
const definitionOperations = ['create', 'update', 'delete'] as const satisfies Operation[]

/** A change of definitions as the change log would have it. */
export type DefinitionDiff = {
  subject: DefinitionSubject
  id: number
  operation: (typeof definitionOperations)[number]
  before: object
  after: object
}

/** Rolls back the transaction of a dry run. It carries the changes that the transaction would log. */
export class DefinitionDryRun extends Error {
  readonly changes: readonly DefinitionDiff[]
  constructor(changes: readonly DefinitionDiff[]) {
    super('the dry run is done')
    this.changes = changes
  }
}

const values = (description: string) => Type.Record(Type.String(), Type.Unknown(), { description })

/** The response of a write of definitions with `dry_run=true`. */
const definitionDryRun = Type.Object(
  {
    dry_run: Type.Literal(true),
    changes: Type.Array(
      Type.Object({
        subject: Type.Enum(definitionSubjects),
        id: nullable(Type.Integer({ minimum: 1, description: 'Null for a creation.' })),
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

/** Defines the row of a write whose dry run ends in {@link DefinitionDryRun}. */
export function definitionWrite<Body>(row: Parameters<typeof route<Body>>[0]): Route {
  const handle = (call: Call<Body>) => (call.isDryRun ? respondDryRun(() => row.handle(call)) : row.handle(call))
  return { ...row, dryRun: definitionDryRun, handle } as Route
}

async function respondDryRun(write: () => Promise<HandlerResult>): Promise<HandlerResult> {
  try {
    await write()
    return { status: 200, data: { dry_run: true, changes: [] } }
  } catch (error) {
    if (!(error instanceof DefinitionDryRun)) throw error
    const changes = error.changes.map(({ subject, id, operation, before, after }) => ({
      subject,
      id: operation === 'create' ? null : id,
      operation,
      before,
      after,
    }))
    return { status: 200, data: { dry_run: true, changes } }
  }
}
