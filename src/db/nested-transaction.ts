import { type Database, flushed, statement, type Transaction } from './db.ts'
import { isDeadlock } from './pg-errors.ts'

const begin = statement('', 'savepoint joined')
const commit = statement('', 'release savepoint joined')
const rollback = statement('', 'rollback to savepoint joined')
/** $1: milliseconds, 0 for no limit. Until the end of the transaction, or of the savepoint that is rolled back to. */
const limitLocksSql = statement('limit_locks', `select set_config('lock_timeout', $1, true)`)

/**
 * A deadlock, and no reason to try the same part again: what the other waits for may be older than its savepoint, and
 * would never come free.
 */
export class DeadlockedBefore extends Error {}

/**
 * A database all of whose statements belong to `tx`, for code that would open a transaction of its own: its
 * transactions become savepoints, which may fail and be tried again. They follow each other, and `tx` is committed by
 * whoever has begun it, unless `broken` names an error: then part of the work is undone, and all of it must be.
 */
export function nestedDatabase(outer: Database, tx: Transaction): { db: Database; broken: () => unknown } {
  let broken: unknown
  const breaks = (error: unknown) => {
    broken ??= error
  }
  const refuseBroken = () => {
    if (isDeadlock(broken)) throw new DeadlockedBefore('the whole transaction has to be run again', { cause: broken })
    if (broken) throw broken
  }
  const query: Transaction['query'] = async (statement, values) => {
    refuseBroken()
    return tx.query(statement, values)
  }
  const copy: Transaction['copy'] = async (statement, rows) => {
    refuseBroken()
    return tx.copy(statement, rows)
  }
  const db: Database = {
    outer,
    observer: outer.observer,
    connect: outer.connect,
    close: async () => {},
    query: (statement, values) =>
      query(statement, values).catch(error => {
        breaks(error)
        throw error
      }) as never,
    transaction: async (work, { lockTimeoutMs = 0 } = {}) => {
      refuseBroken()
      const begun = flushed([query(begin, []), query(limitLocksSql, [`${Math.floor(lockTimeoutMs)}`])])
      begun.catch(() => {})
      try {
        // Released only when the work is content: what fails after that could not be undone by itself.
        const result = await work({ query, copy, commit: async () => {} })
        await flushed([begun, query(commit, [])])
        return result
      } catch (error) {
        const first: unknown = await begun.then(
          () => error,
          failedToBegin => failedToBegin,
        )
        await query(rollback, []).catch(breaks)
        if (!isDeadlock(first)) throw first
        breaks(first)
        throw new DeadlockedBefore('the whole transaction has to be run again', { cause: first })
      }
    },
  }
  return { db, broken: () => broken }
}
