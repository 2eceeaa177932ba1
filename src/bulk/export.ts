import type { Context } from '../db/context.ts'
import { awaitPipelined } from '../db/db.ts'
import { closeAtAbort, type Snapshot } from '../db/snapshot.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { RowPrinter } from '../entities/read/composite-row-parser.ts'
import { linePrinter } from '../entities/read/entity-json.ts'
import { openExportedSnapshot } from '../entities/read/exported-snapshot.ts'
import { startOf } from '../entities/read/pagination.ts'
import { wholeById } from '../entities/read/projection.ts'
import { copyAllSql, readInOrderSql, waitForReaderSql } from '../entities/read/read-sql.ts'
import { type Definitions, definitionsAt } from '../organizations/definitions.ts'
import { readSchemaVersionSql } from '../organizations/definitions-sql.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { closeEntity } from '../route/closed-fields.ts'
import { accessOf, type FieldAccess } from '../route/field-rights.ts'
import type { HandlerResult } from '../route/result.ts'
import { requireScope } from '../route/scopes.ts'
import { maxShownIds } from '../route/shown.ts'

/** The size of a chunk. Its buffer is reused for the next chunk after it is sent. */
const chunkBytes = 128 * 1024

export type ExportBody = { after_id?: string; links?: 'id' }

/** Streams all entities of a stack as lines, in order of their ids, from one snapshot. */
export async function exportEntities(kind: EntityKind, call: Call<ExportBody>): Promise<HandlerResult> {
  const { caller, context, body, signal } = call
  requireScope(caller, kind.reads)
  const stack_id = await kind.stackOf(call)
  const after_id = startOf({
    direction: 'asc',
    after_id: body.after_id && kind.identifier.toUuid(body.after_id),
  })
  const { snapshot, close } = await openExportedSnapshot(context.db, context.organization_id)
  try {
    const definitions = await definitionsOf(context, snapshot, signal)
    const stream = linesFrom(call, { snapshot, close, definitions, stack_id, after_id })
    const access = accessOf(caller, stack_id)
    return { status: 200, stream: access ? closeLines(stream, access) : stream }
  } catch (error) {
    await close()
    throw error
  }
}

/** The definitions, which are not older than the snapshot. */
export async function definitionsOf(context: Context, snapshot: Snapshot, signal: Signal): Promise<Definitions> {
  const [head] = await snapshot.query<{ schema_version: number }>(readSchemaVersionSql, [context.organization_id])
  return definitionsAt(context, head!.schema_version, signal)
}

/** Lines of entities without the fields that the role of the caller closes. A chunk contains whole lines. */
async function* closeLines(chunks: AsyncIterable<Buffer>, access: FieldAccess): AsyncGenerator<string> {
  for await (const chunk of chunks) yield chunk.toString().replaceAll(/[^\n]+/g, line => closeEntity(line, access))
}

type Export = {
  snapshot: Snapshot
  close: () => Promise<void>
  definitions: Definitions
  stack_id: number
  after_id: string
}

/** Prints rows as they arrive, no faster than they are sent. Each chunk reuses the buffer of the previous one. */
async function* linesFrom(
  { shown, signal, body }: Call<ExportBody>,
  { snapshot, close, definitions, stack_id, after_id }: Export,
): AsyncGenerator<Buffer> {
  const printer = new RowPrinter()
  const isById = body.links === 'id'
  const projection = isById ? wholeById(stack_id) : undefined
  const print = linePrinter(printer, { definitions, stack_id, projection })
  let listed = 0
  const end = closeAtAbort(snapshot, close, signal)
  try {
    // A signal that has aborted before does not call the listener.
    signal.throwIfAborted()
    await awaitPipelined([snapshot.query(waitForReaderSql, []), snapshot.query(readInOrderSql, [])])
    const copying = snapshot.copy(
      copyAllSql(definitions.organization_id, stack_id, after_id, isById),
      (bytes, start) => {
        print(bytes, start)
        if (listed < maxShownIds) shown.add(stack_id, printer.id)
        else shown.addUnlisted(stack_id)
        listed += 1
        return printer.size >= chunkBytes
      },
    )
    for (let more = true; more; printer.start()) {
      more = await copying.readOn()
      yield printer.bytes
    }
  } finally {
    await end()
  }
}
