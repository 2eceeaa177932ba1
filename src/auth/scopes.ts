import { fail, type Refusal, refuseValue } from '../errors.ts'

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

/** The words between spaces, each once. */
export const splitScopes = (text: string): string[] => [...new Set(text.split(' ').filter(word => word !== ''))]

/** What is wrong with the words that somebody asks to have granted: there is none, or one that is no scope. */
export function refuseScopes(words: string[]): Refusal | undefined {
  if (words.length === 0) return refuseValue('/scope', 'A token needs at least one scope.')
  const unknown = words.find(word => !isScope(word))
  if (unknown === undefined) return undefined
  return refuseValue('/scope', `There is no scope ${JSON.stringify(unknown)}: there are ${scopes.join(', ')}.`)
}

/** Throws `forbidden` (RFC 6750 `insufficient_scope`) unless the caller's token carries the scope. */
export function requireScope(caller: { scopes: ReadonlySet<Scope> }, scope: Scope): void {
  if (caller.scopes.has(scope)) return
  fail('forbidden', `The token lacks the scope ${scope}.`, {
    headers: { 'WWW-Authenticate': `Bearer realm="kith", error="insufficient_scope", scope="${scope}"` },
  })
}
