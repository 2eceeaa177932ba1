import createRouter, { type HTTPMethod } from 'find-my-way'
import type { Place } from './exchange.ts'

export type Router = {
  add(place: Place): void
  /** Serves the address for these methods, too; of one that has been added nothing changes. */
  addMethods(methods: readonly string[], place: Place): void
  /** Undefined where there is no such address, or where it does not take the method. */
  find(method: string, url: string): Place | undefined
}

// Longer than any target can be: too long a target is refused as a whole.
const longest_parameter = 1 << 24
const no_query = {}

/** Finds places by method and address; a word comes before a parameter. Whoever takes GET takes HEAD. */
export function createPlaces(): Router {
  const router = createRouter({
    caseSensitive: true,
    ignoreTrailingSlash: false,
    maxParamLength: longest_parameter,
    // Queries are read by our own rules, and later.
    querystringParser: () => no_query,
  })
  const add = (method: string, place: Place) =>
    router.on(method as HTTPMethod, place.path.replace(/\{(\w+)\}/g, ':$1'), unused, place)
  return {
    add: place => {
      add(place.method, place)
      if (place.method === 'GET') add('HEAD', place)
    },
    addMethods: (methods, place) => {
      for (const method of methods) add(method, place)
    },
    find: (method, url) => (router.find(method as HTTPMethod, url)?.store as Place | null) ?? undefined,
  }
}

const unused = () => {}
