import createFindMyWay, { type HTTPMethod } from 'find-my-way'
import type { Config } from '../../config.ts'
import type { OpenEndpoint } from './exchange.ts'
import type { Route } from './route.ts'
import { foreignPathsOf, pathsOf } from './route-precedence.ts'
import { createEndpoint, type RowEndpoint } from './row-endpoint.ts'

/** A method and path that kith serves. */
export type Endpoint = OpenEndpoint | RowEndpoint

export type Router = {
  add(endpoint: Endpoint): void
  /** Makes a path, which the template of an endpoint also matches, not allow a method. */
  exclude(method: string, path: string): void
  /** Returns undefined if the path does not exist or does not allow the method. */
  find(method: string, url: string): Endpoint | undefined
  /** Returns the endpoints of a path for all methods; empty if the path does not exist. */
  findAll(url: string): { method: string; endpoint: Endpoint }[]
}

// Longer than any request target. A target that is too long is refused as a whole.
const maxParameterLength = 1 << 24
const noQuery = {}
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Finds endpoints by method and path. A word has precedence over a parameter. An endpoint for GET also serves HEAD. */
export function createRouter(): Router {
  const router = createFindMyWay({
    caseSensitive: true,
    ignoreTrailingSlash: false,
    maxParamLength: maxParameterLength,
    // kith parses the query string later, by its own rules.
    querystringParser: () => noQuery,
  })
  const add = (method: string, endpoint: Endpoint) => {
    const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name) =>
      'row' in endpoint && endpoint.row.params?.[name] === 'path' ? '*' : `:${name}`,
    )
    router.on(method as HTTPMethod, path, unused, endpoint)
  }
  const find = (method: string, url: string) =>
    (router.find(method as HTTPMethod, url)?.store as Endpoint | null) ?? undefined
  return {
    add: endpoint => {
      add(endpoint.method, endpoint)
      if (endpoint.method === 'GET') add('HEAD', endpoint)
    },
    exclude: (method, path) => {
      const template = path.replace(/\{(\w+)\}/g, ':$1')
      for (const each of method === 'GET' ? ['GET', 'HEAD'] : [method]) router.on(each as HTTPMethod, template, unused)
    },
    find,
    // `OPTIONS *` addresses the server and no path.
    findAll: url =>
      (url.startsWith('/') ? methods : []).flatMap(method => {
        const endpoint = find(method, url)
        return endpoint ? [{ method, endpoint }] : []
      }),
  }
}

const unused = () => {}

/** Adds a route table to the router. */
export function registerRoutes(router: Router, { limits }: Pick<Config, 'limits'>, table: Route[]): void {
  for (const row of table) {
    for (const path of pathsOf(row, table)) router.add(createEndpoint(row, path, limits))
    for (const path of foreignPathsOf(row, table)) router.exclude(row.method, path)
  }
}
