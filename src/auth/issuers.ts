import type { TokenAlgorithm } from './decode-jwt.ts'
import type { VerifyingKey } from './keys/jwk.ts'
import { ownName } from './keys/keys.ts'

/** Looks up keys by `kid`. A token without a `kid` can only be signed with the shared secret. */
export type KeySource = {
  /** The cached key. Undefined if the cache is too old. Returns at once. */
  peek(kid: string | undefined): VerifyingKey | undefined
  /**
   * The cached key, or else a key that is fetched now. Throws a Fault of 503, or the database's error, if the fetch
   * fails.
   */
  find(kid: string | undefined): Promise<VerifyingKey | undefined>
}

/** An issuer of tokens. Only its keys can verify its tokens, and they verify no others. */
export type Issuer = Readonly<{
  name: string
  audience: string
  algorithms: readonly TokenAlgorithm[]
  /** The time for which a token is accepted after its `exp`, because the clock of an outside issuer may differ. */
  toleranceMs: number
  /** The claim that names the role of the caller. Undefined if no claim does. */
  roleClaim: string | undefined
  keys: KeySource
}>

/** The issuer of the tokens that kith signs. */
export const ownIssuer = (keys: KeySource): Issuer =>
  Object.freeze({
    name: ownName,
    audience: ownName,
    algorithms: ['ES256', 'HS256'] as const,
    toleranceMs: 0,
    roleClaim: 'role',
    keys,
  })

/** The outside issuer in the configuration. */
export const outsideIssuer = (
  { issuer, audience, roleClaim }: { issuer: string; audience: string; roleClaim: string | undefined },
  keys: KeySource,
): Issuer =>
  Object.freeze({
    name: issuer,
    audience,
    algorithms: ['ES256', 'RS256', 'EdDSA'] as const,
    toleranceMs: 30_000,
    roleClaim,
    keys,
  })
