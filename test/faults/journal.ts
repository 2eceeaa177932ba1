import type { Reply } from '../support/service.ts'

/**
 * What is known from outside of a write: it was `acknowledged`, so it is done; `refused`, so it never will be; or nobody
 * can say (`unknown`): no answer came, or one that says so.
 */
export type Outcome = 'acknowledged' | 'refused' | 'unknown'

/** One write, as the change log will name it: the mark that its body carries, or of a deletion who was deleted by which request. */
export type Written = { identity: string; outcome: Outcome }

/** One request, of one write or of a batch. Moments are milliseconds of one clock, outside of the victim. */
export type Entry = {
  method: string
  path: string
  body: unknown
  headers: Record<string, string>
  /** All or nothing. */
  atomic: boolean
  writes: Written[]
  started: number
  /** When the answer was there; Infinity while there is none. */
  finished: number
  /** The last answer's status; 0 where none came. */
  status: number
}

/** Kept outside of the victim. `surprises` are answers that no fault explains. */
export type Journal = { entries: Entry[]; surprises: string[] }

export const newJournal = (): Journal => ({ entries: [], surprises: [] })

/** A deletion has no body to carry a mark in. */
export const deletion = (request_id: string, external_id: string): string => `delete ${external_id} by ${request_id}`

/** What the service says when the connection was lost at COMMIT. */
const unknownMessage = /may have been done/

/** Notes an answer; `undefined` is a connection that broke, `never sent` one that was not made. */
export function note(journal: Journal, entry: Entry, reply: Reply | 'never sent' | undefined) {
  entry.finished = performance.now()
  entry.status = typeof reply === 'object' ? reply.status : 0
  if (typeof reply !== 'object') {
    for (const written of entry.writes) written.outcome = reply === undefined ? 'unknown' : 'refused'
    return
  }
  const items = reply.status === 200 && entry.path.endsWith('/batch') ? (reply.body.data.items as Item[]) : undefined
  for (const [index, written] of entry.writes.entries())
    written.outcome = items ? outcomeOf(items[index]!) : outcomeOf({ ...reply.body, status: reply.status })
  // Its elements are written in sets, one after the other: those before the end of its time are done.
  if (!items && reply.status === 504 && entry.path.endsWith('/batch') && !entry.atomic)
    for (const written of entry.writes) written.outcome = 'unknown'
  const strange = items ? items.find(isStrange) : isStrange({ ...reply.body, status: reply.status }) && reply.body
  if (strange) journal.surprises.push(`${entry.method} ${entry.path}: ${reply.status} ${JSON.stringify(strange)}`)
}

type Item = { status: number; error?: string; message?: string }

function outcomeOf({ status, message = '' }: Item): Outcome {
  if (status < 300) return 'acknowledged'
  return unknownMessage.test(message) ? 'unknown' : 'refused'
}

/** A write that the mix makes is done, collides with another's, misses its entity, or meets the fault. */
function isStrange({ status, error }: Item): boolean {
  if (status < 300 || status === 503 || status === 504) return false
  if (status === 500 || status === 404) return error !== 'not_found'
  return !(status === 409 || (status === 400 && error === 'duplicate_entry'))
}

/** How many writes came to what. */
export function countOutcomes(journal: Journal): Record<Outcome, number> {
  const counts = { acknowledged: 0, refused: 0, unknown: 0 }
  for (const { outcome } of journal.entries.flatMap(({ writes }) => writes)) counts[outcome] += 1
  return counts
}
