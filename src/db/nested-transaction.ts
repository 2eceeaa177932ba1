import { awaitPipelined, type Database, statement, type Transaction } from './db.ts'
import { isConflict } from './pg-errors.ts'

const begin = statement('', 'savepoint joined')
const commit = statement('', 'release savepoint joined')
const rollback = statement('', 'rollback to savepoint joined')
/**
 * Limits the waits for locks; 0 milliseconds is no limit. It holds until the transaction ends, or until a rollback to the savepoint.
 * Citus propagates the command to the workers, where the locks are, but not set_config() in a SELECT.
 */
const limitLocks = (ms: number) => statement('', `set local lock_timeout = ${Math.floor(ms)}`)

/**
 * A deadlock inside a nested transaction. A retry of the nested part alone is no use: the other transaction may wait for a lock
 * that is older than the savepoint, and that lock would never be released.
 */
class NestedDeadlock extends Error {}

/**
 * A database whose statements all belong to `tx`, for code that opens its own transactions. These become savepoints, one after
 * the other, which may fail and be retried. The caller commits `tx`. If `broken` returns an error, part of the work
 * was rolled back, and the caller must roll back all of it.
 */
export function nestedDatabase(outer: Database, tx: Transaction): { db: Database; broken: () => unknown } {
  let broken: unknown
  const markBroken = (error: unknown) => {
    broken ??= error
  }
  const throwIfBroken = () => {
    if (isConflict(broken)) throw new NestedDeadlock('the whole transaction has to be run again', { cause: broken })
    if (broken) throw broken
  }
  const query: Transaction['query'] = async (statement, values) => {
    throwIfBroken()
    return tx.query(statement, values)
  }
  const db: Database = {
    outer,
    observer: outer.observer,
    connect: outer.connect,
    close: async () => {},
    query: (statement, values) =>
      query(statement, values).catch(error => {
        markBroken(error)
        throw error
      }) as never,
    transaction: async (work, { lockTimeoutMs = 0 } = {}) => {
      throwIfBroken()
      const beginning = awaitPipelined([query(begin, []), query(limitLocks(lockTimeoutMs), [])])
      beginning.catch(() => {})
      try {
        // The savepoint is released only after the work has succeeded: after that, its part cannot be rolled back separately.
        const copy: Transaction['copy'] = async (into, rows) => {
          throwIfBroken()
          return tx.copy(into, rows)
        }
        const result = await work({ query, copy, commit: async () => {}, rollback: async () => {} })
        await awaitPipelined([beginning, query(commit, [])])
        return result
      } catch (error) {
        const first: unknown = await beginning.then(
          () => error,
          beginError => beginError,
        )
        await query(rollback, []).catch(markBroken)
        if (!isConflict(first)) throw first
        markBroken(first)
        throw new NestedDeadlock('the whole transaction has to be run again', { cause: first })
      }
    },
  }
  return { db, broken: () => broken }
}
