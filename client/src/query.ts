export type QueryValue = string | number | boolean | Date | readonly (string | number | boolean)[] | undefined

/**
 * Encodes parameters as a query with its question mark. An array repeats the name, a date is RFC 3339 in UTC, and an
 * undefined parameter is omitted. Returns an empty text without parameters.
 */
export function queryOf(parameters: Readonly<Record<string, QueryValue>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue
    if (value instanceof Date) query.append(name, value.toISOString())
    else for (const each of Array.isArray(value) ? value : [value]) query.append(name, String(each))
  }
  const text = query.toString()
  return text && `?${text}`
}
