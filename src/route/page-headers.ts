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

/**
 * The policy of a page without scripts. It allows only the styles, which must be the whole content of its `style`
 * element, and forms to kith.
 */
export const pagePolicy = (style: string): string[] => [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  // The page has an empty icon in a data URL, so that the browser requests none.
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
]
