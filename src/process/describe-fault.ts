/**
 * Describes an error for the log without user data. An error of PostgreSQL loses its message and stack, because they
 * quote values.
 */
export function describeFault(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { fault: typeof error }
  const { code, table, column, constraint, routine } = error as unknown as Record<string, string | undefined>
  if (routine === undefined) return { fault: error.name, code, stack: error.stack }
  return { fault: 'database', code, table, column, constraint, routine }
}
