import type { Static } from 'typebox'
import { closedObject, count, flag, nullable, pageLimit, pageOf, Type, text, time } from '../values/json-schema.ts'
import { leftReasons } from './undo.ts'

export const listedImport = Type.Object(
  {
    id: text('The `request_id` of its changes.'),
    owner: text('`people`, or the key of a stack.'),
    actor: text('The subject of the token that imported.'),
    started_at: time(),
    ended_at: nullable(time('Null while it runs, and if the service was killed meanwhile.')),
    received: count('Lines, without blank ones.'),
    created: count('New entities and completed placeholders.'),
    updated: count('Lines merged into an existing entity.'),
    unchanged: count('Lines that changed nothing.'),
    failed: count('Refused lines.'),
    undone_at: nullable(time('When an undo of it ended.')),
  },
  { title: 'Import', description: 'An import. The counts are there when it has ended.' },
)

export const importsQuery = closedObject({
  before: Type.Optional(Type.String({ maxLength: 64, description: 'Only imports before the one with this id.' })),
  limit: pageLimit(500, 'The default is 50.'),
})
export type ImportsQuery = Static<typeof importsQuery>

const exampleImport = {
  id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  owner: 'people',
  actor: 'ada',
  started_at: '2026-01-01T12:00:00.000Z',
  ended_at: '2026-01-01T12:00:07.000Z',
  received: 2_000,
  created: 1_990,
  updated: 9,
  unchanged: 0,
  failed: 1,
  undone_at: null,
}

export const importPage = pageOf(listedImport, 'ImportPage', 'A page of imports, newest first.', [exampleImport])

export const undoBody = closedObject(
  {
    dry_run: Type.Optional(flag('Change nothing, and return what the undo would do.')),
    position: Type.Optional(count('Continue a dry run: the `position` of the response before.')),
  },
  { title: 'UndoBody', examples: [{ dry_run: true }] },
)
export type UndoRequest = Static<typeof undoBody>

const left = Type.Object(
  {
    id: text('The internal identifier.'),
    external_id: nullable(text()),
    owner: text('`people`, or the key of a stack.'),
    path: nullable(text('A JSON Pointer to the field. `/aliases`: further identifiers. Null: the whole entity.')),
    reason: Type.Enum([...leftReasons], {
      description:
        '`changed_since` and `linked_since`: by anything but the import. `gone`: deleted, merged or erased. `consents`: answers stay. ' +
        '`state`: an entity stays active. `definition_changed`: the attribute is another one now. `log_emptied`: the values before are ' +
        'not in the log any more. `refused`: see `message`.',
    }),
    message: Type.Optional(text()),
  },
  { title: 'UndoLeft' },
)
export type Left = Static<typeof left>

export const undone = Type.Object(
  {
    dry_run: flag(),
    deleted: count('Entities that the import created, deleted again.'),
    restored: count('Entities that the job deleted, which exist again.'),
    updated: count('Entities with fields that have their earlier values again.'),
    left: Type.Array(left, {
      description: 'Entities that the import or the job wrote, and that the undo did not change.',
    }),
    has_more: flag('Whether the undo goes on with the next request.'),
    position: count('The changes above this number are done.'),
  },
  {
    title: 'Undone',
    description: 'The result of one request of an undo.',
    examples: [
      {
        ...{ dry_run: false, deleted: 1_990, restored: 0, updated: 8, has_more: false, position: 10_400 },
        left: [
          {
            ...{ id: '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f', external_id: 'customer-1', owner: 'people' },
            ...{ path: '/first_name', reason: 'changed_since' },
          },
        ],
      },
    ],
  },
)

const maxColumns = 5_000
const name = Type.String({ maxLength: 1_000 })
const owner = text('`people`, or the key of a stack.')
const header = Type.Array(name, {
  minItems: 1,
  maxItems: maxColumns,
  description: 'The names of the columns, in order.',
})
const fields = Type.Array(nullable(name), {
  minItems: 1,
  maxItems: maxColumns,
  description: 'The field of each column, as a header of CSV names it. Null leaves the column out.',
})
const exampleMapping = {
  owner: 'people',
  header: ['Nr', 'Ort', 'Notiz'],
  fields: ['external_id', 'attribute_values.city', null],
}

export const mappingBody = closedObject(
  { owner, header, fields },
  { title: 'ImportMappingBody', examples: [exampleMapping] },
)
export type MappingBody = Static<typeof mappingBody>

export const mapping = Type.Object(
  {
    id: text('It follows from the owner and the header.'),
    ...{ owner, header, fields },
    actor: text('The subject of the token that saved it.'),
    saved_at: time(),
  },
  {
    title: 'ImportMapping',
    description: 'The fields that the columns of a file became.',
    examples: [
      {
        id: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
        ...exampleMapping,
        ...{ actor: 'ada', saved_at: '2026-01-01T12:00:00.000Z' },
      },
    ],
  },
)
