import type { EntityKind } from '../entities/entity-kind.ts'
import type { Call, Route } from '../http/pipeline/route.ts'
import { type ExportBody, exportEntities } from './export.ts'
import { type ImportQuery, importEntities } from './import.ts'
import { exportBody, importAnswer, importQuery } from './schema.ts'

/** The endpoints by which all of a kind of entity comes in and goes out: people and the records of a stack have the same. */
export function transferEndpoints(kind: EntityKind): Route[] {
  const { path, params, plural, noun, body, answer } = kind
  const shared = { params, tag: plural, streams: true } as const
  return [
    {
      ...shared,
      method: 'POST',
      path: `${path}/import`,
      scope: kind.writes,
      prefers: ['references=strict'],
      operationId: `import${plural}`,
      summary: `Import ${plural.toLowerCase()}`,
      description:
        `Takes lines of JSON, any number of them: the body of a create each. Whoever has the \`external_id\` of a line is ` +
        `merged as PATCH merges; a ${noun} without one is always new. The answer tells line by line what is refused, every second ` +
        'how far it is, and last what has become of all lines. A connection that breaks leaves whole sets of lines, and ' +
        'what is sent again is unchanged. An Idempotency-Key is ignored.',
      query: importQuery,
      item: body,
      answer: importAnswer,
      handle: call => importEntities(kind, call as Call<ImportQuery>),
    },
    {
      ...shared,
      // A GET would be somebody's: `export` is an external identifier like any other.
      method: 'POST',
      path: `${path}/export`,
      scope: kind.reads,
      operationId: `export${plural}`,
      summary: `Export ${plural.toLowerCase()}`,
      description:
        'All there are, as they stood at one moment, one a line, in order of their identifiers. An export that breaks ' +
        'ends with the connection, without the end that a whole answer has; `after_id` goes on behind the last line that came.',
      body: exportBody(kind.identifier.kind === 'uuid' ? 'uuid' : 'object-id'),
      hasDefaults: true,
      example: { body: {} },
      answer,
      handle: call => exportEntities(kind, call as Call<ExportBody>),
    },
  ]
}
