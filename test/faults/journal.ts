import type { Reply } from '../support/service.ts'

/**
 * The outcome of a write as its client knows it: `acknowledged` was done, `refused` was not done and never will be. `unknown` had no
 * response, or one that reports an unknown outcome.
 */
export type Outcome = 'acknowledged' | 'refused' | 'unknown'

/** One write. `identity` finds its change in the change log: the mark in its body, or for a deletion its name and request id. */
export type RecordedWrite = {
  identity: string
  outcome: Outcome
  /** The entity that the response to a restore has. It may have existed, and then it has no change. */
  restored?: { id: string; version: number }
}

/** One request with one write or a batch. Times are milliseconds of the test process's clock, not of the process under test. */
export type Entry = {
  method: string
  path: string
  body: unknown
  headers: Record<string, string>
  /** Whether all writes are done or none. */
  atomic: boolean
  writes: RecordedWrite[]
  started: number
  /** The time of the response; Infinity before. */
  finished: number
  /** The status of the last response; 0 if there was none. */
  status: number
}

/** The journal of a load, outside the process under test. `unexplained` are responses that no injected fault explains. */
export type Journal = { entries: Entry[]; unexplained: string[] }

export const newJournal = (): Journal => ({ entries: [], unexplained: [] })

/** Returns the identity of a deletion, whose request has no body for a mark. */
export const deletionIdentity = (request_id: string, external_id: string): string =>
  `delete ${external_id} by ${request_id}`

/** Returns the identity of a restore. Its change repeats the mark of the last write before the deletion. */
export const restoreIdentity = (request_id: string): string => `restore by ${request_id}`

/** The message of a response whose connection to PostgreSQL was lost at COMMIT. */
const unknownMessage = /may have been done/

/** Records a response. `undefined` is a connection that broke, `never sent` one that could not be opened. */
export function recordReply(journal: Journal, entry: Entry, reply: Reply | 'never sent' | undefined) {
  entry.finished = performance.now()
  entry.status = typeof reply === 'object' ? reply.status : 0
  if (typeof reply !== 'object') {
    for (const write of entry.writes) write.outcome = reply === undefined ? 'unknown' : 'refused'
    return
  }
  if (reply.status === 200 && entry.path.endsWith('/restore')) {
    const { id, record_id = id, version } = reply.body.data
    entry.writes[0]!.restored = { id: record_id, version }
  }
  const items = reply.status === 200 && entry.path.endsWith('/batch') ? (reply.body.data.items as Item[]) : undefined
  for (const [index, write] of entry.writes.entries())
    write.outcome = items ? outcomeOf(items[index]!) : outcomeOf({ ...reply.body, status: reply.status })
  // A batch is written in sets, one after the other. The sets before the deadline are done.
  if (!items && reply.status === 504 && entry.path.endsWith('/batch') && !entry.atomic)
    for (const write of entry.writes) write.outcome = 'unknown'
  const unexplained = items
    ? items.find(isUnexplained)
    : isUnexplained({ ...reply.body, status: reply.status }) && reply.body
  if (unexplained)
    journal.unexplained.push(`${entry.method} ${entry.path}: ${reply.status} ${JSON.stringify(unexplained)}`)
}

type Item = { status: number; error?: string; message?: string }

function outcomeOf({ status, message = '' }: Item): Outcome {
  if (status < 300) return 'acknowledged'
  return unknownMessage.test(message) ? 'unknown' : 'refused'
}

/** Returns whether a status is neither success, a name conflict, a missing entity nor the injected fault. */
function isUnexplained({ status, error }: Item): boolean {
  if (status < 300 || status === 503 || status === 504) return false
  if (status === 500 || status === 404) return error !== 'not_found'
  return !(status === 409 || (status === 400 && error === 'duplicate_entry'))
}

/** Counts the writes by outcome. */
export function countOutcomes(journal: Journal): Record<Outcome, number> {
  const counts = { acknowledged: 0, refused: 0, unknown: 0 }
  for (const { outcome } of journal.entries.flatMap(({ writes }) => writes)) counts[outcome] += 1
  return counts
}
