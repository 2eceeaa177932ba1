/**
 * Returns whether two JSON values are equal. Objects compare by their own keys in any order, arrays in order, and -0
 * equals 0. Clients choose the keys, even `valueOf` and `constructor`, so the comparison calls no method of the values.
 */
export function jsonEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (!isContainer(one) || !isContainer(other) || Array.isArray(one) !== Array.isArray(other)) return false
  const keys = Object.keys(one)
  if (keys.length !== Object.keys(other).length) return false
  return keys.every(key => Object.hasOwn(other, key) && jsonEqual(one[key], other[key]))
}

const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
