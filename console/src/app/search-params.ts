import type { Filter } from '@kith/client'
import { parseSearchWith, stringifySearchWith } from '@tanstack/react-router'

/** Reads an object or a list. Any other value stays text, because a search text may be 42, 1e5 or null. */
function parseObject(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) throw new TypeError('is text')
  return value
}

const parse = parseSearchWith(parseObject)

/** The parameters of an address: texts, objects and lists. */
export const parseSearch: typeof parse = address =>
  Object.fromEntries(
    // The router converts numbers and booleans before this parser, but only those that print exactly as written.
    Object.entries(parse(address)).map(([key, value]) => [key, typeof value === 'object' ? value : String(value)]),
  )

export const stringifySearch = stringifySearchWith(JSON.stringify, parseObject)

/** The router keeps the raw value of a parameter that the validation drops. This removes it. */
export const onlyValid =
  <Validate extends (search: Record<string, unknown>) => object>(validate: Validate) =>
  (search: Record<string, unknown>) =>
    ({
      ...Object.fromEntries(Object.keys(search).map(key => [key, undefined])),
      ...validate(search),
    }) as ReturnType<Validate>

/** Reads a member of an address. Undefined omits it. */
type Read<Value> = (value: unknown) => Value | undefined

/** Returns a function that reads the members of an address. It omits a member with an invalid value. */
export const addressReader =
  <Members extends object>(members: { [Name in keyof Members]: Read<Members[Name]> }) =>
  (address: Record<string, unknown>) => {
    const read = Object.entries<Read<unknown>>(members).map(([name, read]) => [name, read(address[name])] as const)
    return Object.fromEntries(read.filter(([, value]) => value !== undefined)) as Partial<Members>
  }

export const oneOf =
  <const Value extends string>(values: readonly Value[]): Read<Value> =>
  value =>
    values.find(each => each === value)

/** A text of a form. */
export const textLike =
  (form: RegExp): Read<string> =>
  value =>
    typeof value === 'string' && form.test(value) ? value : undefined

/** A text that is not empty. */
export const text = textLike(/./s)
export const anyText = textLike(/^/)

/** A number between two bounds, inclusive. */
export const numberIn =
  (min: number, max: number): Read<number> =>
  value =>
    value !== undefined && Number(value) >= min && Number(value) <= max ? Number(value) : undefined

/** The error for an address with a truncated or misspelt filter. */
export class UnreadableFilterError extends Error {
  override message = 'The filter of the address cannot be read.'
}

/**
 * The filter of an address. Throws an UnreadableFilterError if it is no object: a list without the filter would show
 * other rows.
 */
export function filterOfAddress(filter: unknown): Filter | undefined {
  if (filter === undefined || filter === '') return undefined
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) throw new UnreadableFilterError()
  return filter as Filter
}

/**
 * The address of the sign-in. `next` is the page to return to, which must be a page of the console so that a link
 * cannot lead to another host. `error` is the reason why a sign-in at the outside issuer failed.
 */
export const validateSignInSearch = addressReader({ next: textLike(/^\/(?![/\\])/), error: anyText })
