import type { Route } from './route.ts'

/**
 * The paths at which a row is served: its own path, and those that the router would give to another row, because it
 * prefers a word to a parameter. `/v1/people/internal/related` belongs to `/v1/people/{external_id}/related`, whatever
 * the methods of `/v1/people/internal/{uuid}` are.
 */
export const pathsOf = (row: Route, table: Route[]): string[] => [
  row.path,
  ...overlapsOf(row, table).filter(path => isPossible(row, path)),
]

/**
 * The paths at which the router would find a row, although a parameter of it cannot have that word: `PATCH /v1/attributes/batch` is no
 * path of `/v1/attributes/{id}`.
 */
export const foreignPathsOf = (row: Route, table: Route[]): string[] =>
  [...overlapsOf(row, table), ...narrowerPathsOf(row, table)].filter(path => !isPossible(row, path))

/** The paths of the table that a row matches too, but for those that have its method. */
function narrowerPathsOf(row: Route, table: Route[]): string[] {
  const own = row.path.split('/')
  const matches = (path: string) => {
    const segments = path.split('/')
    return segments.length === own.length && own.every((one, index) => isParameter(one) || one === segments[index])
  }
  const paths = new Set(table.map(({ path }) => path).filter(matches))
  return [...paths.difference(new Set(pathsWithMethodOf(row, table)))]
}

/** The paths that match a row and, with a word for a parameter, a row of another method. */
function overlapsOf(row: Route, table: Route[]): string[] {
  const overlaps = table.map(other => findOverlap(row.path.split('/'), other.path.split('/')))
  const declaredPaths = pathsWithMethodOf(row, table)
  return [...new Set(overlaps.filter(path => path !== undefined && !declaredPaths.includes(path)))] as string[]
}

const pathsWithMethodOf = (row: Route, table: Route[]): string[] =>
  table.filter(({ method }) => method === row.method).map(({ path }) => path)

/** Whether the parameters of a row can have the words that a path has in their places. */
function isPossible({ path, params = {} }: Route, other: string): boolean {
  const segments = other.split('/')
  return path.split('/').every((segment, index) => {
    const word = segments[index]!
    if (!isParameter(segment) || isParameter(word)) return true
    const kind = params[segment.slice(1, -1)]
    if (kind === 'number' || kind === 'count') return /^\d+$/.test(word)
    return kind !== 'uuid' && kind !== 'object_id'
  })
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
