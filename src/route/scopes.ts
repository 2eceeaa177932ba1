import { createValueRefusal, Fault, refuse } from '../values/errors.ts'

export const scopes = [
  'people:read',
  'people:write',
  'people:erase',
  'records:read',
  'records:write',
  'consents:read',
  'schema:read',
  'schema:write',
  'changes:read',
  'exports:read',
  'webhooks:read',
  'webhooks:write',
  'access:read',
  'access:write',
  'operations:read',
] as const

export type Scope = (typeof scopes)[number]

/** Whether an endpoint of the scope and the method writes. */
export const isWriting = (scope: Scope, method: string): boolean => /:(write|erase)$/.test(scope) && method !== 'GET'

const knownScopes: ReadonlySet<string> = new Set(scopes)

const isScope = (text: string): text is Scope => knownScopes.has(text)

/** The scopes in a space-separated text. A word that is not exactly a scope grants nothing. */
export function parseScopes(text: string): ReadonlySet<Scope> {
  return new Set(text.split(' ').filter(isScope))
}

/** The distinct words of a space-separated text. */
export const splitScopes = (text: string): string[] => [...new Set(text.split(' ').filter(word => word !== ''))]

/**
 * The distinct scopes that a space-separated text requests. Throws a Fault of 400 for an unknown scope, or without any.
 */
export function requireScopes(text: string): string[] {
  const words = splitScopes(text)
  const unknown = words.find(word => !isScope(word))
  if (words.length > 0 && unknown === undefined) return words
  const message = `The scope ${JSON.stringify(unknown)} does not exist. The scopes are ${scopes.join(', ')}.`
  throw new Fault(createValueRefusal('/scope', words.length > 0 ? message : 'A token needs at least one scope.'))
}

/** The headers of the refusal of a request without a token or session (RFC 6750). */
export const bearerChallenge = { headers: { 'WWW-Authenticate': 'Bearer realm="kith"' } }

/**
 * Throws a Fault `forbidden` (RFC 6750 `insufficient_scope`) unless the caller's token has the scope. `purpose` ends
 * the sentence of the message where the reason is not obvious.
 */
export function requireScope(caller: { scopes: ReadonlySet<Scope> }, scope: Scope, purpose = ''): void {
  if (caller.scopes.has(scope)) return
  refuse('forbidden', `The token lacks the scope ${scope}${purpose}.`, {
    headers: { 'WWW-Authenticate': `Bearer realm="kith", error="insufficient_scope", scope="${scope}"` },
  })
}
