import type { Database, Transaction, TransactionOptions } from './db.ts'

/** Carries the result of the work out of its transaction, which it rolls back. */
class RolledBack<T> extends Error {
  readonly result: T
  constructor(result: T) {
    super('the transaction was rolled back')
    this.result = result
  }
}

/** Runs `work` as {@link Database.transaction} does, but rolls back even if it succeeds. Returns its result. */
export async function runAndRollBack<T>(
  db: Pick<Database, 'transaction'>,
  work: (tx: Transaction) => Promise<T>,
  options?: TransactionOptions,
): Promise<T> {
  const run = async (tx: Transaction): Promise<never> => {
    throw new RolledBack(await work(tx))
  }
  try {
    return await db.transaction(run, options)
  } catch (error) {
    if (error instanceof RolledBack) return error.result as T
    throw error
  }
}
