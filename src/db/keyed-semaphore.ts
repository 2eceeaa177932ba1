import type { Signal } from '../signal.ts'
import { type Database, rootOf } from './db.ts'

type Line = { running: number; waiting: Set<() => void> }

/** Does `work` when it is its turn among those of its key, in order of arrival. Rejects with the signal's reason. */
export type KeyedSemaphore<Key> = <T>(
  db: Database,
  key: Key,
  signal: Signal | undefined,
  work: () => Promise<T>,
) => Promise<T>

/** Lets `atOnce` go on at the same time in a process, for each key of a database. */
export function keyedSemaphore<Key>(atOnce: number): KeyedSemaphore<Key> {
  const lines = new WeakMap<Database, Map<Key, Line>>()
  return async (db, key, signal, work) => {
    const ofDatabase = lines.get(rootOf(db)) ?? new Map<Key, Line>()
    lines.set(rootOf(db), ofDatabase)
    const line = ofDatabase.get(key) ?? { running: 0, waiting: new Set() }
    ofDatabase.set(key, line)
    if (line.running < atOnce) line.running += 1
    else await waitIn(line, signal)
    try {
      return await work()
    } finally {
      handOn(line)
      if (line.running === 0) ofDatabase.delete(key)
    }
  }
}

function waitIn({ waiting }: Line, signal: Signal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const enter = () => {
      signal?.removeEventListener('abort', giveUp)
      resolve()
    }
    const giveUp = () => {
      waiting.delete(enter)
      reject(signal?.reason)
    }
    waiting.add(enter)
    signal?.addEventListener('abort', giveUp, { once: true })
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
