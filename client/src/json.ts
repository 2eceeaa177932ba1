/**
 * Encodes a body as JSON. Throws a TypeError for values that JSON.stringify silently replaces by null: NaN, infinities,
 * invalid dates, and `undefined` inside an array. A field that is `undefined` is omitted.
 */
export function encode(body: unknown): string {
  return JSON.stringify(body, function (this: unknown, key: string, value: unknown) {
    if (typeof value === 'number' && !Number.isFinite(value))
      throw new TypeError(`${JSON.stringify(key)} is ${value}, which JSON cannot represent`)
    if (value === null && (this as Record<string, unknown>)[key] instanceof Date)
      throw new TypeError(`${JSON.stringify(key)} is an invalid date`)
    if (value === undefined && Array.isArray(this)) throw new TypeError(`element ${key} of an array is undefined`)
    return value
  })
}

/** Encodes an identifier as a path segment. Throws a TypeError for identifiers that a URL would normalize away or cannot have. */
export function segment(identifier: string): string {
  if (typeof identifier !== 'string' || /^\.{0,2}$|\p{Surrogate}/u.test(identifier))
    throw new TypeError(`${JSON.stringify(identifier)} is not an identifier that a URL can contain`)
  return encodeURIComponent(identifier)
}
