import createFindMyWay, { type HTTPMethod } from 'find-my-way'
import type { Config } from '../../process/config.ts'
import type { Route } from '../../route/route.ts'
import { editsBetween, hintOf } from '../../values/did-you-mean.ts'
import type { Handle, OpenEndpoint } from './exchange.ts'
import { createEndpoint, type RowEndpoint } from './row-endpoint.ts'

/** A method and path that kith serves. */
export type Endpoint = OpenEndpoint | RowEndpoint

export type Router = ReturnType<typeof createRouter>

// No request target is longer, because a target that is too long is refused as a whole.
const maxParameterLength = 1 << 24
const noQuery = {}
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Finds endpoints by method and path. A word has precedence over a parameter. An endpoint for GET also serves HEAD. */
export function createRouter() {
  const router = createFindMyWay({
    caseSensitive: true,
    ignoreTrailingSlash: false,
    maxParamLength: maxParameterLength,
    // kith parses the query string later, with different rules.
    querystringParser: () => noQuery,
  })
  const add = (method: string, endpoint: Endpoint) => {
    const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name) =>
      'row' in endpoint && endpoint.row.params?.[name] === 'path' ? '*' : `:${name}`,
    )
    router.on(method as HTTPMethod, path, unused, endpoint)
  }
  const templates = new Map<string, Set<string>>()
  /** Returns undefined if the path does not exist or does not allow the method. */
  const find = (method: string, url: string) =>
    (router.find(method as HTTPMethod, url)?.store as Endpoint | null) ?? undefined
  function addEndpoint(endpoint: Endpoint): void {
    const path = 'row' in endpoint ? endpoint.row.path : endpoint.path
    templates.set(endpoint.method, (templates.get(endpoint.method) ?? new Set()).add(path))
    add(endpoint.method, endpoint)
    if (endpoint.method === 'GET') add('HEAD', endpoint)
  }
  return {
    add: addEndpoint,
    /** Adds a GET that needs no API token. */
    get: (path: string, handle: Handle): void => addEndpoint({ method: 'GET', path, handle }),
    /** Makes a path disallow a method, although the template of an endpoint matches the path. */
    exclude: (method: string, path: string): void => {
      const template = path.replace(/\{(\w+)\}/g, ':$1')
      for (const each of method === 'GET' ? ['GET', 'HEAD'] : [method]) router.on(each as HTTPMethod, template, unused)
    },
    find,
    /**
     * Returns the endpoints of a path for all methods, empty if the path does not exist. `OPTIONS *` addresses the
     * server and has no path.
     */
    findAll: (url: string) =>
      (url.startsWith('/') ? methods : []).flatMap(method => {
        const endpoint = find(method, url)
        return endpoint ? [{ method, endpoint }] : []
      }),
    /** The end of the message about an unknown path: the path that was probably meant. */
    suggest: (method: string, url: string): string => {
      const segments = url.split('?', 1)[0]!.split('/')
      const paths = templates.get(method === 'HEAD' ? 'GET' : method) ?? []
      return hintOf([...paths].map(path => ({ name: path, edits: editsToPath(segments, path.split('/')) })))
    },
  }
}

/**
 * The number of edits from a path to a template, whose parameters match any value. Undefined if a word is too
 * different.
 */
function editsToPath(segments: readonly string[], template: readonly string[]): number | undefined {
  if (segments.length !== template.length) return undefined
  let sum = 0
  for (const [index, word] of template.entries()) {
    const edits = isParameter(word) ? 0 : editsBetween(segments[index]!, word)
    if (edits === undefined) return undefined
    sum += edits
  }
  return sum
}

const unused = () => {}

/** Adds a route table to the router. */
export function registerRoutes(router: Router, { limits }: Pick<Config, 'limits'>, table: Route[]): void {
  for (const row of table) {
    for (const path of pathsOf(row, table)) router.add(createEndpoint(row, path, limits))
    for (const path of foreignPathsOf(row, table)) router.exclude(row.method, path)
  }
}

/**
 * The paths at which a row is served: its own path, and the paths that the router would give to another row, because it
 * prefers a word to a parameter. `/v1/people/internal/related` belongs to `/v1/people/{external_id}/related`, whatever
 * the methods of `/v1/people/internal/{uuid}` are.
 */
export const pathsOf = (row: Route, table: Route[]): string[] => [
  row.path,
  ...overlapsOf(row, table).filter(path => isPossible(row, path)),
]

/**
 * The paths at which the router would find a row, although its parameter cannot have that word: `PATCH
 * /v1/attributes/batch` is no path of `/v1/attributes/{id}`.
 */
export const foreignPathsOf = (row: Route, table: Route[]): string[] =>
  [...overlapsOf(row, table), ...narrowerPathsOf(row, table)].filter(path => !isPossible(row, path))

/** The paths of the table that a row matches too, except those that have its method. */
function narrowerPathsOf(row: Route, table: Route[]): string[] {
  const own = row.path.split('/')
  const matches = (path: string) => {
    const segments = path.split('/')
    return segments.length === own.length && own.every((one, index) => isParameter(one) || one === segments[index])
  }
  return withoutMethodOf(row, table, pathsBeside(row, table).filter(matches))
}

/** The paths that match a row and, with a word instead of a parameter, a row of another method. */
function overlapsOf(row: Route, table: Route[]): string[] {
  const own = row.path.split('/')
  const overlaps = pathsBeside(row, table).map(path => findOverlap(own, path.split('/')))
  return withoutMethodOf(
    row,
    table,
    overlaps.filter(path => path !== undefined),
  )
}

/**
 * The paths of the table that have the words before the first parameter of a row. Only these can overlap with it. A new
 * process compares them in 17 ms of processor time. It took 82 ms to compare each row with all others.
 */
function pathsBeside({ path }: Route, table: Route[]): string[] {
  const firstParameter = path.indexOf('{')
  if (firstParameter === -1) return []
  const words = path.slice(0, firstParameter)
  return table.map(other => other.path).filter(other => other.startsWith(words))
}

/** Each path once, but for the paths of rows with the same method. */
function withoutMethodOf({ method }: Route, table: Route[], paths: string[]): string[] {
  const isDeclared = (path: string) => table.some(other => other.method === method && other.path === path)
  return [...new Set(paths)].filter(path => !isDeclared(path))
}

/** Whether the parameters of a row accept the words that a path has in their positions. */
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

/** The path that matches a template and another one that the router prefers, or undefined if there is none. */
function findOverlap(own: string[], other: string[]): string | undefined {
  const first = own.findIndex((segment, index) => segment !== other[index])
  if (own.length !== other.length || first === -1) return undefined
  if (!isParameter(own[first]!) || isParameter(other[first]!)) return undefined
  const shared = own.map((segment, index) => (isParameter(segment) ? other[index]! : segment))
  const isMatch = other.every((segment, index) => isParameter(segment) || segment === shared[index])
  return isMatch && shared.join('/') !== other.join('/') ? shared.join('/') : undefined
}
