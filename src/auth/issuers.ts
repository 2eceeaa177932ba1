import type { TokenAlgorithm } from './decode-jwt.ts'
import type { VerifyingKey } from './jwk.ts'
import { ownName } from './keys.ts'

/** Keys by `kid`. A token that names none may only come from who knows the shared secret. */
export type KeySource = {
  /** The key, where what is known is young enough to go by. */
  peek(kid: string | undefined): VerifyingKey | undefined
  /** The same, asking where it must. Throws a Fault of 503, or the database's error, where the keys cannot be had. */
  find(kid: string | undefined): Promise<VerifyingKey | undefined>
}

/** Who makes tokens: each is believed about its own tokens alone, by its own keys alone. */
export type Issuer = Readonly<{
  name: string
  audience: string
  algorithms: readonly TokenAlgorithm[]
  /** How long a token is taken past its `exp`: the clock of an outside issuer is not ours. */
  toleranceMs: number
  keys: KeySource
}>

/** The service itself. */
export const ownIssuer = (keys: KeySource): Issuer =>
  Object.freeze({ name: ownName, audience: ownName, algorithms: ['ES256', 'HS256'] as const, toleranceMs: 0, keys })

/** The one that the configuration names. */
export const outsideIssuer = ({ issuer, audience }: { issuer: string; audience: string }, keys: KeySource): Issuer =>
  Object.freeze({
    name: issuer,
    audience,
    algorithms: ['ES256', 'RS256', 'EdDSA'] as const,
    toleranceMs: 30_000,
    keys,
  })
