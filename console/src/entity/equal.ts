/** Whether two JSON values are equal. The order of members does not matter. */
export function isEqual(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const [keys, otherKeys] = [Object.keys(one), Object.keys(other)]
  const [first, second] = [one as Record<string, unknown>, other as Record<string, unknown>]
  return keys.length === otherKeys.length && keys.every(key => key in second && isEqual(first[key], second[key]))
}

/**
 * The members of a body that differ from the read values, so that a form does not overwrite values that it only shows.
 */
export const changedMembers = <Body extends object>(body: Body, read: object): Partial<Body> =>
  Object.fromEntries(
    Object.entries(body).filter(([name, value]) => !isEqual(value, (read as Record<string, unknown>)[name])),
  ) as Partial<Body>
