import type { Route } from './route.ts'

/**
 * The paths at which a row is served: its own path, and those that the router would give to another row, because it
 * prefers a word to a parameter. `/v1/people/internal/related` belongs to `/v1/people/{external_id}/related`, whatever
 * the methods of `/v1/people/internal/{uuid}` are.
 */
export function pathsOf(row: Route, table: Route[]): string[] {
  const overlaps = table.map(other => findOverlap(row.path.split('/'), other.path.split('/')))
  const declaredPaths = table.filter(({ method }) => method === row.method).map(({ path }) => path)
  return [
    row.path,
    ...new Set(overlaps.filter(path => path !== undefined && !declaredPaths.includes(path))),
  ] as string[]
}

const isParameter = (segment: string) => segment.startsWith('{')

/** The path that matches both a template and another one that the router prefers; undefined if there is none. */
function findOverlap(own: string[], other: string[]): string | undefined {
  const first = own.findIndex((segment, index) => segment !== other[index])
  if (own.length !== other.length || first === -1) return undefined
  if (!isParameter(own[first]!) || isParameter(other[first]!)) return undefined
  const shared = own.map((segment, index) => (isParameter(segment) ? other[index]! : segment))
  const isMatch = other.every((segment, index) => isParameter(segment) || segment === shared[index])
  return isMatch && shared.join('/') !== other.join('/') ? shared.join('/') : undefined
}
