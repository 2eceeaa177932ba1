import type { IncomingMessage } from 'node:http'
import type { Config } from '../../process/config.ts'
import { refuse } from '../../values/errors.ts'

/** The cookie of a session of the console. A browser takes the second one only over TLS, and from no other host of the domain. */
const sessionName = 'kith_session'
const secureSessionName = `__Host-${sessionName}`
/** The cookie of a sign-in that has begun at the outside issuer. */
const pendingName = 'kith_sign_in'

/** The values of the session's cookie in a Cookie header. A browser sends one, and another host of the domain may have set the other. */
export function readSessionCookies(header: string | undefined): string[] {
  const secure = readCookies(header, secureSessionName)
  return secure.length > 0 ? secure : readCookies(header, sessionName)
}

/** The values of the cookie of a sign-in at the outside issuer. */
export const readPendingCookies = (header: string | undefined): string[] => readCookies(header, pendingName)

function readCookies(header: string | undefined, name: string): string[] {
  if (header === undefined) return []
  const prefix = `${name}=`
  return header
    .split(';')
    .map(pair => pair.trim())
    .filter(pair => pair.startsWith(prefix))
    .map(pair => pair.slice(prefix.length))
}

/**
 * The Set-Cookie header of a session. A script cannot read the cookie, and a browser sends it with no request that another site
 * causes. `maxAgeSeconds` of 0 removes the cookie.
 */
export function sessionCookie(
  token: string,
  { maxAgeSeconds, isSecure }: { maxAgeSeconds: number; isSecure: boolean },
): string {
  return `${isSecure ? secureSessionName : sessionName}=${token}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

/**
 * The Set-Cookie header of a sign-in at the outside issuer. A browser sends it when the issuer leads it back, which a cookie with
 * SameSite=Strict would not do. `path` is that of the endpoints of the sign-in.
 */
export function pendingCookie(
  value: string,
  { maxAgeSeconds, isSecure, path }: { maxAgeSeconds: number; isSecure: boolean; path: string },
): string {
  return `${pendingName}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
}

type OriginSettings = Pick<Config, 'tls' | 'behindProxy' | 'publicUrl'>

/** Whether the browser of a request reached the service by HTTPS: kith terminates TLS, or the proxy says that it does. */
export function isEncrypted({ headers }: IncomingMessage, { tls, behindProxy, publicUrl }: OriginSettings): boolean {
  if (tls) return true
  if (behindProxy === 0) return false
  const entries = String(headers['x-forwarded-proto'] ?? '').split(',')
  // Each trusted proxy appends an entry, or the outermost one sets the only entry.
  const entry = entries.at(-Math.min(behindProxy, entries.length))!.trim().toLowerCase()
  return entry === '' ? publicUrl?.startsWith('https:') === true : entry === 'https'
}

/** The origin under which a browser has reached the service. */
export function ownOrigin(request: IncomingMessage, settings: OriginSettings): string {
  return `${isEncrypted(request, settings) ? 'https' : 'http'}://${request.headers.host ?? ''}`.toLowerCase()
}

/**
 * Throws a Fault `forbidden` if KITH_PUBLIC_URL names another host than the request. A site that points its own name to this machine
 * would else have pages of the console on its own origin.
 */
export function requirePublicHost({ headers: { host = '' } }: IncomingMessage, { publicUrl }: OriginSettings): void {
  if (publicUrl === undefined || hostnameOf(host) === new URL(publicUrl).hostname) return
  refuse('forbidden', `The console works at ${publicUrl} only. A proxy in front of kith must pass the header Host on.`)
}

/** The name without the port, which some proxies leave out. */
const hostnameOf = (host: string) => host.toLowerCase().replace(/:\d+$/, '')

/**
 * Throws a Fault `forbidden` unless a page of the service itself has sent the request, so that no other site can use the cookie of
 * its visitor. Browsers set Sec-Fetch-Site and Origin themselves, and no script can change them. An older browser sends only Origin.
 */
export function requireSameOrigin(request: IncomingMessage, settings: OriginSettings): void {
  requirePublicHost(request, settings)
  const { 'sec-fetch-site': site, origin } = request.headers
  if (site === 'same-origin') return
  if (site === undefined && origin !== undefined && isOwnOrigin(origin, request, settings)) return
  const problem =
    site === undefined && origin === undefined
      ? 'it has neither the header Sec-Fetch-Site nor Origin. Programs use a token instead of the cookie'
      : 'another site has sent it'
  refuse('forbidden', `The cookie of a session is only accepted from a page of this service: ${problem}.`)
}

const isOwnOrigin = (origin: string, request: IncomingMessage, settings: OriginSettings) =>
  settings.publicUrl === undefined
    ? origin.toLowerCase() === ownOrigin(request, settings)
    : origin === new URL(settings.publicUrl).origin

/** Whether a browser asks for a page. Programs such as curl send the wildcard alone. */
export const acceptsHtml = ({ headers }: IncomingMessage) => /\btext\/html\b/i.test(headers.accept ?? '')
