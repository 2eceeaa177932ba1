import type { IncomingMessage } from 'node:http'
import type { Config } from '../../process/config.ts'
import { refuse } from '../../values/errors.ts'

/** The cookies of a session of the console, and of a sign-in in progress at the outside issuer. */
type CookieName = 'kith_session' | 'kith_sign_in'

/** The name over TLS. A browser accepts such a cookie only over TLS, and from no other host of the domain. */
const nameOf = (name: CookieName, isSecure: boolean) => (isSecure ? `__Host-${name}` : name)

/**
 * The values of a cookie in the header of a request. Over TLS, a cookie without the prefix is ignored, because another
 * host may have set it.
 */
export function readCookies(header: string | undefined, name: CookieName, isSecure: boolean): string[] {
  if (header === undefined) return []
  const prefix = `${nameOf(name, isSecure)}=`
  return header
    .split(';')
    .map(pair => pair.trim())
    .filter(pair => pair.startsWith(prefix))
    .map(pair => pair.slice(prefix.length))
}

/** The session tokens of the console in the cookies of a request. */
export const readSessionCookies = (request: IncomingMessage, settings: OriginSettings): string[] =>
  request.headers.cookie === undefined
    ? []
    : readCookies(request.headers.cookie, 'kith_session', isEncrypted(request, settings))

type CookieOptions = { maxAgeSeconds: number; isSecure: boolean }

/**
 * The Set-Cookie header of a session. A script cannot read the cookie, and a browser never sends it with requests from
 * other sites. `maxAgeSeconds` of 0 removes the cookie.
 */
export const sessionCookie = (token: string, options: CookieOptions): string =>
  printCookie('kith_session', token, 'Strict', options)

/**
 * The Set-Cookie header of a sign-in at the outside issuer. A browser sends it when the issuer redirects back, which it
 * would not do with SameSite=Strict.
 */
export const pendingCookie = (value: string, options: CookieOptions): string =>
  printCookie('kith_sign_in', value, 'Lax', options)

const printCookie = (name: CookieName, value: string, sameSite: string, { maxAgeSeconds, isSecure }: CookieOptions) =>
  `${nameOf(name, isSecure)}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=${sameSite}${isSecure ? '; Secure' : ''}`

type OriginSettings = Pick<Config, 'tls' | 'behindProxy' | 'publicUrl'>

/**
 * Whether the browser of a request reached the service by HTTPS: kith terminates TLS, or the proxy or KITH_PUBLIC_URL
 * indicates it.
 */
export function isEncrypted({ headers }: IncomingMessage, { tls, behindProxy, publicUrl }: OriginSettings): boolean {
  if (tls) return true
  const isPublic = publicUrl?.startsWith('https:') === true
  if (behindProxy === 0) return isPublic
  const entries = String(headers['x-forwarded-proto'] ?? '').split(',')
  // Each trusted proxy appends an entry, or the outermost one sets the only entry.
  const entry = entries.at(-Math.min(behindProxy, entries.length))!.trim().toLowerCase()
  return entry === '' ? isPublic : entry === 'https'
}

/** The origin under which a browser has reached the service. */
export function ownOrigin(request: IncomingMessage, settings: OriginSettings): string {
  return `${isEncrypted(request, settings) ? 'https' : 'http'}://${request.headers.host ?? ''}`.toLowerCase()
}

/**
 * Throws a Fault `forbidden` if KITH_PUBLIC_URL names another host than the request. Otherwise a site that points its
 * name to this machine could load pages of the console on its own origin.
 */
export function requirePublicHost({ headers: { host = '' } }: IncomingMessage, { publicUrl }: OriginSettings): void {
  if (publicUrl === undefined || hostnameOf(host) === new URL(publicUrl).hostname) return
  refuse('forbidden', `The console works at ${publicUrl} only. A proxy in front of kith must pass the header Host on.`)
}

/** The name without the port, which some proxies leave out. */
const hostnameOf = (host: string) => host.toLowerCase().replace(/:\d+$/, '')

/**
 * Throws a Fault `forbidden` unless a page of the service itself has sent the request, so that no other site can use
 * its visitor's cookie. Browsers set Sec-Fetch-Site and Origin themselves, and no script can change them. An older
 * browser sends only Origin.
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

/** Whether a browser requests a page. Programs such as curl send only the wildcard. */
export const acceptsHtml = ({ headers }: IncomingMessage) => /\btext\/html\b/i.test(headers.accept ?? '')
