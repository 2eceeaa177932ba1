import { fail } from '../errors.ts'

export const scopes = [
  'people:read',
  'people:write',
  'records:read',
  'records:write',
  'schema:read',
  'schema:write',
] as const

export type Scope = (typeof scopes)[number]

const known: ReadonlySet<string> = new Set(scopes)

export const isScope = (text: string): text is Scope => known.has(text)

/** The scopes that a space-separated text names, each whole and exact. Other words grant nothing. */
export function parseScopes(text: string): ReadonlySet<Scope> {
  return new Set(text.split(' ').filter(isScope))
}

/** Throws `forbidden` (RFC 6750 `insufficient_scope`) unless the caller's token carries the scope. */
export function requireScope(caller: { scopes: ReadonlySet<Scope> }, scope: Scope): void {
  if (caller.scopes.has(scope)) return
  fail('forbidden', `The token lacks the scope ${scope}.`, {
    headers: { 'WWW-Authenticate': `Bearer realm="kith", error="insufficient_scope", scope="${scope}"` },
  })
}
