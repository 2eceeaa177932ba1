/**
 * The JSON text of a body. Refuses, with a TypeError, what JSON would turn into null without a word: NaN and the
 * infinities, and `undefined` inside an array. A field that is `undefined` is absent.
 */
export function encode(body: unknown): string {
  return JSON.stringify(body, function (this: unknown, key: string, value: unknown) {
    if (typeof value === 'number' && !Number.isFinite(value))
      throw new TypeError(`${JSON.stringify(key)} is ${value}, which JSON has no number for`)
    if (value === undefined && Array.isArray(this)) throw new TypeError(`element ${key} of an array is undefined`)
    return value
  })
}

/** An identifier as a segment of a path. Refuses, with a TypeError, what a URL would not keep apart from other addresses. */
export function segment(identifier: string): string {
  if (typeof identifier !== 'string' || identifier === '' || identifier === '.' || identifier === '..')
    throw new TypeError(`${JSON.stringify(identifier)} cannot identify anything`)
  return encodeURIComponent(identifier)
}
