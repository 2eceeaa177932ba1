/**
 * Whether two values of JSON are the same: objects by their own keys, in any order; arrays in order; -0 is 0. Keys are
 * the client's own, `valueOf` and `constructor` among them: nothing of the data is called or asked what it is.
 */
export function jsonEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (!isContainer(one) || !isContainer(other) || Array.isArray(one) !== Array.isArray(other)) return false
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length) return false
  return keys.every(key => Object.hasOwn(other, key) && jsonEqual(one[key], other[key]))
}

const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
