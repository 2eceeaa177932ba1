import type { Database } from '../db/db.ts'
import type { Signal } from '../signal.ts'

/**
 * So many connections the writes under keys of an organization take at a time. Each has one to itself and may wait in it for a
 * row that is locked elsewhere; one organization shall not hold them all. More would gain nothing: they wait for one head.
 */
export const turns_at_once = 3

type Line = { running: number; waiting: Set<() => void> }

const lines = new WeakMap<Database, Map<number, Line>>()

/** Does `work` when it is its turn among those of its organization, in order of arrival. Rejects with the signal's reason. */
export async function inTurn<T>(
  db: Database,
  organization_id: number,
  signal: Signal,
  work: () => Promise<T>,
): Promise<T> {
  const of_database = lines.get(db) ?? new Map<number, Line>()
  lines.set(db, of_database)
  const line = of_database.get(organization_id) ?? { running: 0, waiting: new Set() }
  of_database.set(organization_id, line)
  if (line.running < turns_at_once) line.running += 1
  else await waitIn(line, signal)
  try {
    return await work()
  } finally {
    handOn(line)
    if (line.running === 0) of_database.delete(organization_id)
  }
}

function waitIn({ waiting }: Line, signal: Signal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const enter = () => {
      signal.removeEventListener('abort', give_up)
      resolve()
    }
    const give_up = () => {
      waiting.delete(enter)
      reject(signal.reason)
    }
    waiting.add(enter)
    signal.addEventListener('abort', give_up, { once: true })
  })
}

/** The turn goes to whoever has waited longest; without anybody it is over. */
function handOn(line: Line) {
  const [next] = line.waiting
  if (!next) {
    line.running -= 1
    return
  }
  line.waiting.delete(next)
  next()
}
