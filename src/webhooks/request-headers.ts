import { pointer, throwBrokenRule } from '../values/errors.ts'

/** Headers of a webhook's requests: their values by lower-case names. In a patch, null removes a header. */
export type RequestHeaders = Record<string, string>
export type HeadersPatch = Record<string, string | null>

export const maxHeaders = 5
const maxNameCharacters = 100
export const maxValueCharacters = 4_096

/**
 * The headers that kith sets, and those that frame a message or apply to one connection (RFC 9110, 7.6.1; RFC 9112).
 */
const reservedNames = new Set(
  (
    'content-type user-agent content-length content-encoding transfer-encoding connection keep-alive te trailer upgrade expect host ' +
    'http2-settings proxy-authenticate proxy-authorization proxy-connection'
  ).split(' '),
)
const isReserved = (name: string) => reservedNames.has(name) || name.startsWith('webhook-')

const namePattern = new RegExp(`^[!#$%&'*+.^_\`|~\\da-z-]{1,${maxNameCharacters}}$`)
// A value has printable ASCII characters, with white space only between them.
const valuePattern = /^[!-~](?:[\t -~]*[!-~])?$/

/**
 * Returns the headers of a body with lower-case names. Throws a Fault of 400 for a name that is no token, that kith or
 * HTTP uses, or that occurs twice, and for an invalid value.
 */
export function readHeaders<Value extends string | null>(given: Record<string, Value>): Record<string, Value> {
  const headers = new Map<string, Value>()
  for (const [written, value] of Object.entries(given)) {
    const name = written.toLowerCase()
    const fault = nameFault(name, headers) ?? valueFault(value)
    if (fault !== undefined) throwBrokenRule(pointer('headers', written), fault)
    headers.set(name, value)
  }
  return Object.fromEntries(headers)
}

function nameFault(name: string, others: ReadonlyMap<string, unknown>): string | undefined {
  if (!namePattern.test(name)) return `is not the name of a header of at most ${maxNameCharacters} characters`
  if (isReserved(name)) return 'is a header that kith or HTTP sets itself'
  return others.has(name) ? 'is given twice: upper and lower case are equal' : undefined
}

function valueFault(value: string | null): string | undefined {
  if (value === null || (value.length <= maxValueCharacters && valuePattern.test(value))) return undefined
  return `must have 1 to ${maxValueCharacters} printable ASCII characters`
}

/** The names of the headers after a patch, in order. Throws a Fault of 400 if there are too many. */
export function namesAfter(names: readonly string[], patch: HeadersPatch): string[] {
  const next = new Set(names)
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) next.delete(name)
    else next.add(name)
  }
  if (next.size > maxHeaders) throwBrokenRule('/headers', `must have at most ${maxHeaders} headers`)
  return [...next].sort()
}

/**
 * Throws a Fault of 400 if a stored header would be sent to another origin. Otherwise a caller who may change the
 * address of a webhook could read values that reads do not show.
 */
export function requireSameOrigin(
  { url, headers }: { url: string; headers: readonly string[] },
  nextUrl: string,
  patch: HeadersPatch,
): void {
  const kept = headers.filter(name => !Object.hasOwn(patch, name))
  if (kept.length === 0 || new URL(url).origin === new URL(nextUrl).origin) return
  const names = kept.join(', ')
  throwBrokenRule('/headers', `must have ${names} again, or null for it, because the url has another origin`)
}

/** A text with the values of headers replaced, because a receiver may repeat them in its response. */
export const withoutValues = (text: string, headers: RequestHeaders): string =>
  Object.values(headers).reduce((shown, value) => shown.replaceAll(value, '[header]'), text)
