import type { Database } from '../db/db.ts'
import { openSnapshot, type Snapshot } from '../db/snapshot.ts'
import { RowPrinter } from '../entities/composite-row-parser.ts'
import { linePrinter } from '../entities/entity-json.ts'
import type { EntityKind } from '../entities/entity-kind.ts'
import { startOf } from '../entities/pagination.ts'
import { copyAllSql, prepareCopySql } from '../entities/read-sql.ts'
import type { Call, HandlerResult } from '../http/pipeline/route.ts'
import { type Definitions, definitionsAt } from '../organizations/definitions.ts'
import { readSchemaVersionSql } from '../organizations/definitions-sql.ts'
import type { Signal } from '../signal.ts'
import { semaphore } from './semaphore.ts'

/** Bytes that are sent in one piece: a part is written over by the next, once it has left. */
const partBytes = 128 * 1024

/** Each holds a connection of its own for as long as its client takes to read: one organization takes half of them. */
const mostAtOnce = 4
const mostOfOne = mostAtOnce / 2

const enterProcess = semaphore<'export'>(mostAtOnce, `There are ${mostAtOnce} exports running already.`)
const enterOrganization = semaphore<number>(
  mostOfOne,
  `There are ${mostOfOne} exports of the organization running already.`,
)

export type ExportBody = { after_id?: string }

/** Answers all entities of a stack as lines, in order of their ids, as they stood at one moment. */
export async function exportEntities(kind: EntityKind, call: Call<ExportBody>): Promise<HandlerResult> {
  const { db, caller, body, signal } = call
  const stack_id = await kind.stackOf(call)
  const after_id = startOf({
    direction: 'asc',
    after_id: body.after_id && kind.identifier.toUuid(body.after_id),
  })
  const leave = enter(db, caller.organization.id)
  const snapshot = await openSnapshot(db).catch(error => {
    leave()
    throw error
  })
  const close = () => snapshot.close().finally(leave)
  try {
    const definitions = await definitionsOf(db, snapshot, caller.organization.id, signal)
    return { status: 200, stream: linesFrom({ snapshot, close, definitions, stack_id, after_id, signal }) }
  } catch (error) {
    await close()
    throw error
  }
}

/** Counts an export in; what it returns counts it out. */
function enter(db: Database, organizationId: number): () => void {
  const leaveOrganization = enterOrganization(db, organizationId)
  try {
    const leaveProcess = enterProcess(db, 'export')
    return () => {
      leaveProcess()
      leaveOrganization()
    }
  } catch (error) {
    leaveOrganization()
    throw error
  }
}

/** Definitions no older than what the snapshot shows. */
async function definitionsOf(
  db: Database,
  snapshot: Snapshot,
  organization_id: number,
  signal: Signal,
): Promise<Definitions> {
  const [head] = await snapshot.query<{ schema_version: number }>(readSchemaVersionSql, [organization_id])
  return definitionsAt(db, organization_id, head!.schema_version, signal)
}

type Export = {
  snapshot: Snapshot
  close: () => Promise<void>
  definitions: Definitions
  stack_id: number
  after_id: string
  signal: Signal
}

/** Rows are printed as they arrive, no more of them than are sent. A part's bytes are written over by the next. */
async function* linesFrom({
  snapshot,
  close,
  definitions,
  stack_id,
  after_id,
  signal,
}: Export): AsyncGenerator<Buffer> {
  const printer = new RowPrinter()
  const print = linePrinter(printer, definitions, stack_id)
  const cut = () => void snapshot.close()
  signal.addEventListener('abort', cut, { once: true })
  try {
    // Who was cut off before this is not told of again.
    signal.throwIfAborted()
    await snapshot.query(prepareCopySql, [definitions.organization_id, stack_id, after_id])
    const copying = snapshot.copy(copyAllSql, (bytes, start) => {
      print(bytes, start)
      return printer.size >= partBytes
    })
    for (let more = true; more; printer.start()) {
      more = await copying.readOn()
      yield printer.bytes
    }
  } finally {
    signal.removeEventListener('abort', cut)
    await close()
  }
}
