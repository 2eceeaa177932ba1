/** A fault for the log, without the data that it happened on: PostgreSQL's own messages quote values. */
export function describeFault(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { fault: typeof error }
  const { code, table, column, constraint, routine } = error as unknown as Record<string, string | undefined>
  if (routine === undefined) return { fault: error.name, code, stack: error.stack }
  return { fault: 'database', code, table, column, constraint, routine, problem: fullDiskProblem(error) }
}

/** What a person is told of PostgreSQL's error for a full disk; undefined for any other error. */
export function fullDiskProblem(error: unknown): string | undefined {
  if ((error as { code?: unknown }).code !== '53100') return undefined
  return 'The disk of the database is full: make room where PostgreSQL keeps its data.'
}
