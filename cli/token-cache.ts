/** The lifetime of a token that a command creates itself. */
export const ownTokenSeconds = 3_600
const lifetimeMs = ownTokenSeconds * 1_000

/**
 * Returns a function that returns a token of `makeToken`, and makes the next one after half of its lifetime. If that fails, because
 * the database is stopped for a moment, the token stays until its end. Throws the error of `makeToken` if there is no valid token.
 */
export function createTokenCache(makeToken: () => Promise<string>, nowMs = Date.now): () => Promise<string> {
  let current: { token: string; madeMs: number } | undefined
  return async () => {
    const ageMs = current === undefined ? Number.POSITIVE_INFINITY : nowMs() - current.madeMs
    if (current !== undefined && ageMs <= lifetimeMs / 2) return current.token
    try {
      current = { token: await makeToken(), madeMs: nowMs() }
    } catch (error) {
      if (current === undefined || ageMs >= lifetimeMs) throw error
    }
    return current.token
  }
}
