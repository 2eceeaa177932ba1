import { type Database, rootOf } from './db.ts'

/**
 * Returns a function that returns the state of a database. `create` makes it at the first use. All shares of a database
 * have the same state.
 */
export function perDatabase<T, Rest extends unknown[]>(
  create: (root: Database, ...rest: Rest) => T,
): (db: Database, ...rest: Rest) => T {
  const states = new WeakMap<Database, { state: T }>()
  return (db, ...rest) => {
    const root = rootOf(db)
    const known = states.get(root)
    if (known) return known.state
    const state = create(root, ...rest)
    states.set(root, { state })
    return state
  }
}
