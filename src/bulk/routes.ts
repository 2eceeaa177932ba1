import { type Route, route } from '../route/route.ts'
import { listImports } from './imports.ts'
import { type ImportsQuery, importPage, importsQuery, type UndoRequest, undoBody, undone } from './imports-schema.ts'
import { undoImport } from './undo-import.ts'

const tag = 'Changes'

/** The route table of the imports that were recorded. */
export const importRoutes = (): Route[] => [
  route<ImportsQuery>({
    method: 'GET',
    tag,
    path: '/v1/imports',
    scope: 'changes:read',
    operationId: 'listImports',
    summary: 'List imports, newest first',
    description: 'Imports stay in the list as long as the log has the values of their changes.',
    query: importsQuery,
    answer: importPage,
    handle: listImports,
  }),
  route<UndoRequest>({
    method: 'POST',
    tag,
    path: '/v1/imports/{import_id}/undo',
    params: { import_id: 'external_id' },
    scope: 'people:write',
    operationId: 'undoImport',
    summary: 'Undo an import',
    description:
      'Takes back what the import changed and nothing has written since, as ordinary changes: it deletes entities that the import ' +
      'created, and restores earlier values. For records, the token needs `records:write` too. Repeat the request while `has_more` is true.',
    body: undoBody,
    answer: undone,
    repeats: 'safe',
    handle: undoImport,
  }),
]
