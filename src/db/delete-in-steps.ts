import type { Signal } from '../process/signal.ts'
import type { Database, Statement } from './db.ts'

/**
 * Deletes rows in small transactions, until none are left or the signal aborts, and returns their number. The statement
 * deletes at most `limit` rows, which is one of its values, and returns their `count`, which `deleted` receives.
 */
export async function deleteInSteps(
  db: Pick<Database, 'query'>,
  statement: Statement,
  values: unknown[],
  { limit, signal, deleted }: { limit: number; signal?: Signal | undefined; deleted?: (count: number) => void },
): Promise<number> {
  let total = 0
  while (!signal?.aborted) {
    const [row] = await db.query<{ count: number }>(statement, values)
    total += row!.count
    deleted?.(row!.count)
    if (row!.count < limit) break
  }
  return total
}
