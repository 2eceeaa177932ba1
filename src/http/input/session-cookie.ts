/** The cookie of a session of the console. */
const cookieName = 'kith_session'

/** The values of the session's cookie in a Cookie header. A browser sends one. */
export function readSessionCookies(header: string | undefined): string[] {
  if (header === undefined) return []
  const prefix = `${cookieName}=`
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
  return `${cookieName}=${token}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}
