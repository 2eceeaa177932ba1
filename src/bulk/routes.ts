import { listSchema } from '../organizations/definition-schema.ts'
import { type Route, route } from '../route/route.ts'
import { Type } from '../values/json-schema.ts'
import { listImports } from './imports.ts'
import {
  type ImportsQuery,
  importPage,
  importsQuery,
  type MappingBody,
  mapping,
  mappingBody,
  type UndoRequest,
  undoBody,
  undone,
} from './imports-schema.ts'
import { forgetMapping, listMappings, saveMapping } from './mappings.ts'
import { undoImport } from './undo-import.ts'

const tag = 'Changes'
const mappingsPath = '/v1/import-mappings'

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
    hasDefaults: true,
    answer: undone,
    repeats: 'safe',
    handle: undoImport,
  }),
  route({
    method: 'GET',
    tag,
    path: mappingsPath,
    scope: 'schema:read',
    fields: 'none',
    operationId: 'listImportMappings',
    summary: 'List what the columns of earlier files became',
    description: 'The newest comes first.',
    answer: listSchema(mapping),
    handle: listMappings,
  }),
  route<MappingBody>({
    method: 'PUT',
    tag,
    path: mappingsPath,
    scope: 'people:write',
    fields: 'none',
    operationId: 'saveImportMapping',
    summary: 'Remember what the columns of a file became',
    description:
      'There is one mapping for each owner and header, and the newest 200 of an organization are kept. The console suggests it for the next file ' +
      'with the same header. It has no values of the file.',
    body: mappingBody,
    answer: mapping,
    handle: saveMapping,
  }),
  route({
    method: 'DELETE',
    tag,
    path: `${mappingsPath}/{mapping_id}`,
    params: { mapping_id: 'external_id' },
    scope: 'people:write',
    fields: 'none',
    operationId: 'forgetImportMapping',
    summary: 'Forget what the columns of a file became',
    answer: Type.Literal(true),
    handle: forgetMapping,
  }),
]
