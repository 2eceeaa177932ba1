import type { Route } from './route.ts'

/**
 * The addresses a row is served at: its own, and those that the router, which prefers a word to a parameter, would take
 * for another's. `/v1/people/internal/related` is of `/v1/people/{external_id}/related`, whatever the methods of
 * `/v1/people/internal/{uuid}` are.
 */
export function addressesOf(row: Route, table: Route[]): string[] {
  const met = table.map(other => meet(row.path.split('/'), other.path.split('/')))
  const taken = table.filter(({ method }) => method === row.method).map(({ path }) => path)
  return [row.path, ...new Set(met.filter(path => path !== undefined && !taken.includes(path)))] as string[]
}

const isParameter = (segment: string) => segment.startsWith('{')

/** The address that is both of a template and of one that comes before it; undefined where there is none of its own. */
function meet(own: string[], other: string[]): string | undefined {
  const first = own.findIndex((segment, index) => segment !== other[index])
  if (own.length !== other.length || first === -1) return undefined
  if (!isParameter(own[first]!) || isParameter(other[first]!)) return undefined
  const shared = own.map((segment, index) => (isParameter(segment) ? other[index]! : segment))
  const meets = other.every((segment, index) => isParameter(segment) || segment === shared[index])
  return meets && shared.join('/') !== other.join('/') ? shared.join('/') : undefined
}
