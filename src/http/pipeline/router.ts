import createRouter, { type HTTPMethod } from 'find-my-way'
import type { Endpoint } from './exchange.ts'

export type Router = {
  add(place: Endpoint): void
  /** Undefined where there is no such address, or where it does not take the method. */
  find(method: string, url: string): Endpoint | undefined
  /** What the address takes, whatever is asked of it; empty where there is no such address. */
  findAll(url: string): { method: string; place: Endpoint }[]
}

// Longer than any target can be: too long a target is refused as a whole.
const longestParameter = 1 << 24
const noQuery = {}
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/** Finds places by method and address; a word comes before a parameter. Whoever takes GET takes HEAD. */
export function createPlaces(): Router {
  const router = createRouter({
    caseSensitive: true,
    ignoreTrailingSlash: false,
    maxParamLength: longestParameter,
    // Queries are read by our own rules, and later.
    querystringParser: () => noQuery,
  })
  const add = (method: string, place: Endpoint) =>
    router.on(method as HTTPMethod, place.path.replace(/\{(\w+)\}/g, ':$1'), unused, place)
  const find = (method: string, url: string) =>
    (router.find(method as HTTPMethod, url)?.store as Endpoint | null) ?? undefined
  return {
    add: place => {
      add(place.method, place)
      if (place.method === 'GET') add('HEAD', place)
    },
    find,
    // `OPTIONS *` names the server and no address.
    findAll: url =>
      (url.startsWith('/') ? methods : []).flatMap(method => {
        const place = find(method, url)
        return place ? [{ method, place }] : []
      }),
  }
}

const unused = () => {}
