import { createHash } from 'node:crypto'

/** The security headers of a page, with helmet's values. The policy lists the resources that the page may load. */
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

/**
 * The policy of a page without scripts. It allows the styles, which must be the whole content of the page's `style`
 * element, and forms that post to kith.
 */
export const pagePolicy = (style: string): string[] => [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  // The page has an empty icon in a data URL, so that browsers do not request one.
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
]
