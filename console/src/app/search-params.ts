import type { Filter } from '@kith/client'
import { parseSearchWith, stringifySearchWith } from '@tanstack/react-router'

/** Reads an object or a list. Any other value stays text, because 42, 1e5 and null can be texts of a search. */
function parseObject(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) throw new TypeError('is text')
  return value
}

const parse = parseSearchWith(parseObject)

/** The parameters of an address: texts, objects and lists. */
export const parseSearch: typeof parse = address =>
  Object.fromEntries(
    // The router reads numbers and booleans before the parser sees them, but only those that print as they were written.
    Object.entries(parse(address)).map(([key, value]) => [key, typeof value === 'object' ? value : String(value)]),
  )

export const stringifySearch = stringifySearchWith(JSON.stringify, parseObject)

/** The router keeps the raw value of a parameter that a validation leaves out. This takes it out. */
export const onlyValid =
  <Validate extends (search: Record<string, unknown>) => object>(validate: Validate) =>
  (search: Record<string, unknown>) =>
    ({
      ...Object.fromEntries(Object.keys(search).map(key => [key, undefined])),
      ...validate(search),
    }) as ReturnType<Validate>

/** Reads a member of an address. Undefined leaves it out. */
type Read<Value> = (value: unknown) => Value | undefined

/** Returns a function that reads the members of an address. It leaves out a member with an invalid value. */
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

/** A number from one bound to the other. */
export const numberIn =
  (min: number, max: number): Read<number> =>
  value =>
    value !== undefined && Number(value) >= min && Number(value) <= max ? Number(value) : undefined

/** An address has a filter that is cut or misspelt. */
export class UnreadableFilterError extends Error {
  override message = 'The filter of the address cannot be read.'
}

/** The filter of an address. Throws an UnreadableFilterError if it is no object: a list without the filter would show others. */
export function filterOfAddress(filter: unknown): Filter | undefined {
  if (filter === undefined || filter === '') return undefined
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) throw new UnreadableFilterError()
  return filter as Filter
}

/**
 * The address of the sign-in: where the person wanted to go, which must be a page of the console so that a link cannot lead to another
 * host, and why a sign-in at the outside issuer failed.
 */
export const validateSignInSearch = addressReader({ next: textLike(/^\/(?![/\\])/), error: anyText })
