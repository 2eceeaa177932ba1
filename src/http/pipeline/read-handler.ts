import { refuse } from '../../errors.ts'
import type { Reads } from '../../readers/reads.ts'
import { readIfSequence } from '../input/if-sequence.ts'
import type { Exchange } from './exchange.ts'
import { laneOf } from './lane.ts'
import type { Call, HandlerResult, Route } from './route.ts'

type Handler = (call: Call, exchange: Exchange) => Promise<HandlerResult>

/**
 * Returns the handler of a read, on the database that `reads` selects for it: the primary or a standby, once the database shows the
 * change that `If-Sequence` names.
 */
export function createReadHandler(reads: Reads, row: Route, handle: Handler): Handler {
  const lane = laneOf(row)
  const prefersReader = row.prefersReader === true
  const isPlain = reads.isPlain({ prefersReader })
  return (call, exchange) => {
    const header = exchange.request.headers['if-sequence'] as string | undefined
    if (header === undefined && isPlain) return handle(call, exchange)
    const { caller, signal } = call
    const { id: organization_id } = caller.organization
    const sequence = header === undefined ? undefined : readIfSequence(header)
    return reads.run({ organization_id, sequence, prefersReader, signal }, (db, isReader) =>
      handle({ ...call, db: db.shareOf(organization_id, lane), isReader }, exchange),
    )
  }
}

/** Refuses a write to a process that only reads, before it reaches the database. */
export function throwReaderOnly(): never {
  refuse(
    'operation_failed',
    'This process only reads (KITH_ROLE=reader). Send writes to a process with the role primary.',
    { status: 503 },
  )
}
