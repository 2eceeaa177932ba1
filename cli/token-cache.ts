/** The lifetime of a token that a command creates itself. */
export const ownTokenSeconds = 3_600
const lifetimeMs = ownTokenSeconds * 1_000

/**
 * Returns a function that caches the token of `makeToken`, and renews it after half of its lifetime. If the renewal
 * fails, for instance during a restart of the database, the cached token is used until it expires. Throws the error of
 * `makeToken` if there is no valid token.
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
