import type { Configuration, CustomFetchOptions } from 'openid-client'
import { isOrganizationKey } from '../organizations/organizations.ts'
import type { Config } from '../process/config.ts'
import { parseScopes } from '../route/scopes.ts'
import { looksLikeClient } from '../values/actor-names.ts'
import { clockToleranceMs, isSubject } from './claims.ts'
import { readBounded } from './keys/outside-keys.ts'

/** The secrets of a sign-in in progress. The browser keeps them in a cookie until it returns from the issuer. */
export type PendingSignIn = { state: string; nonce: string; verifier: string }

/** The person that the issuer has identified. */
export type IssuerIdentity = { organizationKey: string; name: string; scope: string; role: string | undefined }

/** The reasons why a sign-in at the outside issuer fails. */
type IssuerProblem = 'denied' | 'expired' | 'no_access' | 'throttled' | 'unavailable' | 'failed'

/** Ends a sign-in at the outside issuer. `cause` is for the log only. */
export class IssuerRefusal extends Error {
  readonly problem: IssuerProblem
  constructor(problem: IssuerProblem, options?: ErrorOptions) {
    super(problem, options)
    this.name = 'IssuerRefusal'
    this.problem = problem
  }
}

export type SignInIssuer = NonNullable<ReturnType<typeof createSignInIssuer>>

/**
 * Fetches with a limit for the size of the body, because the issuer may be faulty or compromised, and the library reads
 * whole bodies.
 */
async function fetchBounded(url: string, { body, ...options }: CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, { ...options, body: body ?? null })
  const bytes = await readBounded(response)
  const { status, statusText, headers } = response
  return new Response(bytes.length === 0 ? null : new Uint8Array(bytes), { status, statusText, headers })
}

/** The timeout in seconds of each request to the issuer. A callback makes two, within the deadline of its request. */
const timeoutSeconds = 4

/** Reads the endpoints of the issuer. The first sign-in loads the library. */
async function discover(
  { issuer, jwksUrl }: NonNullable<Config['outsideIssuer']>,
  { id, secret }: NonNullable<Config['issuerClient']>,
): Promise<Configuration> {
  const oidc = await import('openid-client')
  const extensions = issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []
  const options = { timeout: timeoutSeconds, execute: extensions, [oidc.customFetch]: fetchBounded }
  const found = await oidc.discovery(new URL(issuer), id, secret, undefined, options)
  // The keys come only from the configured URL, as do those of bearer tokens.
  const { supportsPKCE: _, ...metadata } = found.serverMetadata()
  const configuration = new oidc.Configuration({ ...metadata, jwks_uri: jwksUrl }, id, secret)
  configuration.timeout = timeoutSeconds
  configuration[oidc.customFetch] = fetchBounded
  for (const extend of [...extensions, oidc.enableNonRepudiationChecks]) extend(configuration)
  return configuration
}

/**
 * Signs people in at the outside issuer: the authorization code flow of OpenID Connect with PKCE. Throws IssuerRefusal.
 * Returns undefined if the configuration names no client of the issuer.
 */
export function createSignInIssuer({ outsideIssuer, issuerClient }: Pick<Config, 'outsideIssuer' | 'issuerClient'>) {
  if (!outsideIssuer || !issuerClient) return undefined
  let discovered: Promise<Configuration> | undefined
  const { scope, name } = issuerClient

  async function configure(): Promise<Configuration> {
    discovered ??= discover(outsideIssuer!, issuerClient!)
    try {
      return await discovered
    } catch (cause) {
      discovered = undefined
      throw new IssuerRefusal('unavailable', { cause })
    }
  }

  return {
    name,
    /** The URL at the issuer to which the browser is sent, and the secrets that the browser must bring back. */
    begin: async (redirect_uri: string): Promise<{ url: string; pending: PendingSignIn }> => {
      const configuration = await configure()
      const oidc = await import('openid-client')
      const [state, nonce, verifier] = [oidc.randomState(), oidc.randomNonce(), oidc.randomPKCECodeVerifier()]
      const code_challenge = await oidc.calculatePKCECodeChallenge(verifier)
      const parameters = { redirect_uri, scope, state, nonce, code_challenge, code_challenge_method: 'S256' }
      const url = oidc.buildAuthorizationUrl(configuration, parameters)
      return { url: url.href, pending: { state, nonce, verifier } }
    },
    /** Exchanges the code in the query of `callbackUrl` for the identity of the person. */
    finish: async (callbackUrl: URL, { state, nonce, verifier }: PendingSignIn): Promise<IssuerIdentity> => {
      const configuration = await configure()
      const oidc = await import('openid-client')
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
      const tokens = await oidc.authorizationCodeGrant(configuration, callbackUrl, checks).catch(cause => {
        throw new IssuerRefusal(problemOf(cause), { cause })
      })
      return readIdentity(tokens.claims() ?? {}, outsideIssuer.roleClaim, Date.now())
    },
  }
}

/** The codes of openid-client for an issuer that does not answer, or answers with its own error. */
const awayCodes = ['OAUTH_TIMEOUT', 'OAUTH_RESPONSE_IS_NOT_CONFORM']

/** The issuer's text is not shown, because the author of a link could choose it. */
function problemOf(error: { code?: string; error?: string; name?: string }): IssuerProblem {
  if (error.error === 'access_denied') return 'denied'
  const isAway = error.name === 'TypeError' || awayCodes.includes(error.code ?? '')
  return isAway ? 'unavailable' : 'failed'
}

/**
 * Reads the claims of an ID token: the organization, scopes and role as in bearer tokens, and the name of the person.
 */
function readIdentity(claims: Record<string, unknown>, roleClaim: string | undefined, nowMs: number): IssuerIdentity {
  const { org, scope, sub, name, email, iat } = claims
  // The library checks all other times of an ID token.
  if (typeof iat === 'number' && iat * 1_000 > nowMs + clockToleranceMs) throw new IssuerRefusal('failed')
  const granted = [...parseScopes(typeof scope === 'string' ? scope : '')].join(' ')
  if (typeof org !== 'string' || !isOrganizationKey(org) || granted === '') throw new IssuerRefusal('no_access')
  const shown = [name, email, sub].find(each => isSubject(each) && !looksLikeClient(each, org))
  if (typeof shown !== 'string') throw new IssuerRefusal('no_access')
  const role = roleClaim === undefined ? undefined : claims[roleClaim]
  if (roleClaim !== undefined && typeof role !== 'string') throw new IssuerRefusal('no_access')
  return { organizationKey: org, name: shown, scope: granted, role: role as string | undefined }
}
