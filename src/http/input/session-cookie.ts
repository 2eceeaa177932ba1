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
