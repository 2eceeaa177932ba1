import { createValueRefusal, type Refusal, refuse } from '../values/errors.ts'

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

/** The scopes that a space-separated text names. A word that is not exactly a scope grants nothing. */
export function parseScopes(text: string): ReadonlySet<Scope> {
  return new Set(text.split(' ').filter(isScope))
}

/** The distinct words of a space-separated text. */
export const splitScopes = (text: string): string[] => [...new Set(text.split(' ').filter(word => word !== ''))]

/** Builds a refusal if the requested words are empty or contain an unknown scope. */
export function buildScopeRefusal(words: string[]): Refusal | undefined {
  if (words.length === 0) return createValueRefusal('/scope', 'A token needs at least one scope.')
  const unknown = words.find(word => !isScope(word))
  if (unknown === undefined) return undefined
  return createValueRefusal(
    '/scope',
    `The scope ${JSON.stringify(unknown)} does not exist. The scopes are ${scopes.join(', ')}.`,
  )
}

/** The headers of a refusal of a request without a token or session (RFC 6750). */
export const bearerChallenge = { headers: { 'WWW-Authenticate': 'Bearer realm="kith"' } }

/**
 * Throws a Fault `forbidden` (RFC 6750 `insufficient_scope`) unless the caller's token has the scope. `purpose` ends the
 * message's sentence, where the reason is not obvious.
 */
export function requireScope(caller: { scopes: ReadonlySet<Scope> }, scope: Scope, purpose = ''): void {
  if (caller.scopes.has(scope)) return
  refuse('forbidden', `The token lacks the scope ${scope}${purpose}.`, {
    headers: { 'WWW-Authenticate': `Bearer realm="kith", error="insufficient_scope", scope="${scope}"` },
  })
}
