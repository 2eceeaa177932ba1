import { createLoginThrottle } from '../auth/login-throttle.ts'
import { type IssuerIdentity, IssuerRefusal, type PendingSignIn, type SignInIssuer } from '../auth/oidc.ts'
import {
  isEncrypted,
  ownOrigin,
  pendingCookie,
  readCookies,
  requirePublicHost,
  sessionCookie,
} from '../http/input/browser.ts'
import { clientAddress } from '../http/input/request-head.ts'
import type { Exchange } from '../http/pipeline/exchange.ts'
import { explain } from '../http/pipeline/log.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { Services } from '../http/pipeline/services.ts'
import { describeFault } from '../process/describe-fault.ts'
import type { Logger } from '../process/logger.ts'
import { sessionSeconds, startSessionAtIssuer } from '../sessions/sessions.ts'
import { createSignInLog } from './sign-in-log.ts'

export const startPath = '/console/oidc/start'
const callbackPath = '/console/oidc/callback'

/** The time limit for a person at the issuer. */
const pendingSeconds = 600

/**
 * The words of `/console/sign-in?error=…`, the reason why a sign-in at the outside issuer failed. docs/console.md
 * explains them.
 */
type Problem = IssuerRefusal['problem'] | 'read_only'

/**
 * Adds the two endpoints of a sign-in at the outside issuer. A browser navigates to both, so they answer with
 * redirects, even for a refusal. The locations are relative, because a proxy may serve kith below a path.
 */
export function registerIssuerRoutes(router: Router, services: Services, issuer: SignInIssuer): void {
  const { config } = services
  const throttle = createLoginThrottle()
  const recordSignIn = createSignInLog(services)

  /** The URL of an endpoint as the browser sees it. The issuer has it registered. */
  const urlOf = ({ request }: Exchange, path: string) =>
    new URL(`${config.publicUrl ?? ownOrigin(request, config)}${path}`)

  async function start(exchange: Exchange): Promise<void> {
    // The issuer may answer without asking the person. Another site could then sign its visitor in. So the person must
    // press the button.
    const { 'sec-fetch-site': site = 'none' } = exchange.request.headers
    if (site !== 'none' && site !== 'same-origin') return redirect(exchange, '../sign-in')
    const callbackUrl = urlOf(exchange, callbackPath)
    const { url, pending } = await issuer.begin(callbackUrl.href)
    const isSecure = isEncrypted(exchange.request, config)
    exchange.setCookie(pendingCookie(encodePending(pending), { maxAgeSeconds: pendingSeconds, isSecure }))
    redirect(exchange, url)
  }

  async function finish(exchange: Exchange): Promise<void> {
    const { request, url, deadline } = exchange
    const callbackUrl = urlOf(exchange, callbackPath)
    callbackUrl.search = url.includes('?') ? url.slice(url.indexOf('?')) : ''
    const isSecure = isEncrypted(request, config)
    const pending = decodePending(readCookies(request.headers.cookie, 'kith_sign_in', isSecure))
    if (!pending || callbackUrl.searchParams.get('state') !== pending.state) throw new IssuerRefusal('expired')
    // The issuer accepts a code once, so the cookie ends with its use.
    exchange.setCookie(pendingCookie('', { maxAgeSeconds: 0, isSecure }))
    const identity = await identify(exchange, callbackUrl, pending)
    const started = await startSessionAtIssuer(services.db, identity, deadline.signal)
    if (!started) throw new IssuerRefusal('no_access')
    const { token, session } = started
    const organization = started.organization.key
    exchange.organization = organization
    services.logger.info({ session: session.id, organization }, 'a session of the console began')
    exchange.setCookie(sessionCookie(token, { maxAgeSeconds: sessionSeconds, isSecure }))
    await recordSignIn(exchange, { event: 'sign_in', organization, subject: session.name, status: 302 })
    redirect(exchange, '../')
  }

  /**
   * Lets the issuer identify the person. Only a code that the issuer refuses counts as a failed attempt. Another site
   * could send any number of requests without the cookie of a sign-in, but these cost nothing.
   */
  async function identify({ request }: Exchange, callbackUrl: URL, pending: PendingSignIn): Promise<IssuerIdentity> {
    const address = clientAddress(request, config.behindProxy)
    if (throttle.waitSeconds('issuer', address) !== undefined) throw new IssuerRefusal('throttled')
    try {
      return await issuer.finish(callbackUrl, pending)
    } catch (error) {
      if (error instanceof IssuerRefusal && error.problem === 'failed') throttle.countAttempt('issuer', address)
      throw error
    }
  }

  /** Runs a step of a sign-in. A failure leads to the sign-in page with its reason. */
  const guarded = (step: (exchange: Exchange) => Promise<void>) => async (exchange: Exchange) => {
    if (services.reads.isReader) return redirectToSignIn(exchange, 'read_only')
    try {
      requirePublicHost(exchange.request, config)
      await step(exchange)
    } catch (error) {
      redirectToSignIn(exchange, explainFailure(exchange, error, services.logger))
    }
  }

  router.get(startPath, guarded(start))
  router.get(callbackPath, guarded(finish))
}

/** Returns the word for an error. Logs a fault of the issuer, of kith or of the database. */
function explainFailure(exchange: Exchange, error: unknown, logger: Logger): Problem {
  if (!(error instanceof IssuerRefusal)) {
    explain(exchange, error, logger)
    return 'failed'
  }
  const { problem, cause } = error
  if (problem === 'unavailable' || problem === 'failed')
    logger.warn({ problem, ...(cause instanceof Error && describeFault(cause)) }, 'a sign-in at the issuer failed')
  return problem
}

function redirectToSignIn(exchange: Exchange, problem: Problem) {
  redirect(exchange, `../sign-in?error=${problem}`)
}

function redirect(exchange: Exchange, location: string) {
  exchange.header('Location', location)
  // The URL of the callback contains the code of the issuer.
  exchange.header('Referrer-Policy', 'no-referrer')
  exchange.send(302, '', 'text/plain; charset=utf-8')
}

/** The random values are base64url, so a dot separates them. */
const encodePending = ({ state, nonce, verifier }: PendingSignIn) => [state, nonce, verifier].join('.')

function decodePending(cookies: readonly string[]): PendingSignIn | undefined {
  const [state, nonce, verifier, ...more] = cookies.length === 1 ? cookies[0]!.split('.') : []
  if (!state || !nonce || !verifier || more.length > 0) return undefined
  return { state, nonce, verifier }
}
