import type { EntityKind } from '../entities/entity-kind.ts'
import type { Call, StreamingCall } from '../route/call.ts'
import type { Route } from '../route/route.ts'
import { type ExportBody, exportEntities } from './export.ts'
import { type ImportQuery, importEntities } from './import.ts'
import { exportBody, importAnswer, peopleImportQuery, personLine, recordsImportQuery } from './schema.ts'

/** The import and export endpoints of a kind of entity, for people or the records of a stack. */
export function transferEndpoints(kind: EntityKind): Route[] {
  const { path, params, plural, noun, body, answer } = kind
  const shared = { params, tag: plural, streams: true } as const
  return [
    {
      ...shared,
      method: 'POST',
      path: `${path}/import`,
      scope: kind.writes,
      fields: 'shown',
      prefers: ['references=strict', 'erased=recreate', 'handling=strict'],
      operationId: `import${plural}`,
      summary: `Import ${plural.toLowerCase()}`,
      description:
        `Takes any number of lines of JSON, each the body of a create. If a ${noun} with the \`external_id\` of a line exists, the ` +
        `line is merged into it as by PATCH; a line without \`external_id\` always creates a ${noun}. The response contains a line per ` +
        'refused line, the progress every second, and the counts of all lines at the end. If the connection breaks, whole sets of ' +
        'lines are stored, and lines with an `external_id` can be sent again: they count as unchanged. An Idempotency-Key is ignored. ' +
        'With `Content-Type: text/csv` the body is a table whose first line names the fields.' +
        (noun === 'person'
          ? ' A line of a person may have a `match` of its own, which replaces that of the query.'
          : ''),
      query: noun === 'person' ? peopleImportQuery : recordsImportQuery,
      line: noun === 'person' ? personLine(body) : body,
      answer: importAnswer,
      handle: call => importEntities(kind, call as StreamingCall<ImportQuery>),
    },
    {
      ...shared,
      // The export is not a GET, because `export` is a valid external identifier.
      method: 'POST',
      path: `${path}/export`,
      scope: 'exports:read',
      fields: 'shown',
      prefersReader: true,
      operationId: `export${plural}`,
      summary: `Export ${plural.toLowerCase()}`,
      description:
        'Returns all entities as they were at one moment, one per line, in order of their identifiers. A failed export closes ' +
        'the connection without the end of a complete response. `after_id` continues after the last line that was received. ' +
        `The token also needs the scope \`${kind.reads}\`.`,
      body: exportBody(kind.identifier.kind === 'uuid' ? 'uuid' : 'object-id'),
      hasDefaults: true,
      example: { body: {} },
      answer,
      securityEvent: 'export',
      handle: call => exportEntities(kind, call as Call<ExportBody>),
    },
  ]
}
