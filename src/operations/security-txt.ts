import type { Router } from '../http/pipeline/router.ts'
import type { Config } from '../process/config.ts'

const dayMs = 86_400_000
/** RFC 9116 recommends less than a year, so that copies of the file are renewed in time. */
const validDays = 180

/** The text of RFC 9116 for a contact. All requests of a day (UTC) get the same text. */
export function securityText(contact: string, nowMs: number): string {
  const expires = new Date((Math.floor(nowMs / dayMs) + validDays) * dayMs).toISOString().replace('.000Z', 'Z')
  return `Contact: ${contact}\nExpires: ${expires}\n`
}

/** Adds the file with the contact for reporting vulnerabilities. Without a contact, its path does not exist. */
export function registerSecurityText(router: Router, { securityContact }: Pick<Config, 'securityContact'>): void {
  if (securityContact === undefined) return
  router.get('/.well-known/security.txt', exchange =>
    exchange.send(200, securityText(securityContact, Date.now()), 'text/plain; charset=utf-8'),
  )
}
