import { createHash } from 'node:crypto'

/** The security headers of a page, as helmet sets them. The policy names what the page may load. */
export const pageHeaders = (contentSecurityPolicy: readonly string[]): Record<string, string> => ({
  'Content-Security-Policy': contentSecurityPolicy.join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'X-DNS-Prefetch-Control': 'off',
  'X-Frame-Options': 'DENY',
  'X-Permitted-Cross-Domain-Policies': 'none',
})

/** What a page may do that has no scripts: nothing but use the styles, which are all its `style` element contains, and send forms to kith. */
export const pagePolicy = (style: string): string[] => [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  // The icon of the page is empty, so that the browser asks for none.
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
]
