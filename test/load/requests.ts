import type { Load } from './load.ts'

type RequestDraft = { method: string; path: string; body?: object }
type Draw = { person: string; uniqueName: string }

/** Kinds of requests and their share in percent. `mixed` has the requests that a contacts page sends. */
const requestMixes: Record<Load['work'], [share: number, buildRequest: (draw: Draw) => RequestDraft][]> = {
  patch: [[100, patch]],
  mixed: [
    [45, patch],
    [25, ({ person }) => ({ method: 'GET', path: `/v1/people/${person}` })],
    [
      15,
      ({ uniqueName }) => ({
        method: 'POST',
        path: '/v1/people',
        body: { external_id: uniqueName, first_name: 'Ada' },
      }),
    ],
    [10, upsert],
    [5, filter],
  ],
  slowFilters: [[100, slowFilter]],
}

// Each patch has a new name. A patch that changes nothing would not write.
function patch({ person, uniqueName }: Draw): RequestDraft {
  return { method: 'PATCH', path: `/v1/people/${person}`, body: { first_name: uniqueName, last_name: 'Lovelace' } }
}

function upsert({ person, uniqueName }: Draw): RequestDraft {
  const body = { external_id: person, last_name: uniqueName, attribute_values: { city: uniqueName } }
  return { method: 'POST', path: '/v1/people/upsert', body }
}

function filter({ person }: Draw): RequestDraft {
  const body = { filter: { external_id: { $in: [person, 'p1', 'p2'] } }, cursor_configuration: { size: 20 } }
  return { method: 'POST', path: '/v1/people/filter', body }
}

/** A filter that reads the friends' friends of every person, 64 texts each, and matches none. */
function slowFilter(): RequestDraft {
  const friends = (of: object) => ({ 'attribute_values.friends': { $some: of } })
  const body = { filter: friends(friends({ 'attribute_values.note': { $contains: 'nowhere' } })) }
  return { method: 'POST', path: '/v1/people/filter', body }
}

/** Returns a function that builds the next request as text. A seed always gives the same requests in the same order. */
export function createRequests({ address, token, people, seed, work }: Load): () => string {
  const random = mulberry32(seed)
  const weightedRequests = requestMixes[work].flatMap(([share, buildRequest]) =>
    new Array<(draw: Draw) => RequestDraft>(share).fill(buildRequest),
  )
  const headers = `HTTP/1.1\r\nHost: ${new URL(address).host}\r\nAuthorization: Bearer ${token}\r\n`
  let count = 0
  return () => {
    count += 1
    const draw = { person: `p${1 + Math.floor(random() * people)}`, uniqueName: `f${seed}-${count}` }
    const { method, path, body } = weightedRequests[Math.floor(random() * weightedRequests.length)]!(draw)
    if (!body) return `${method} ${path} ${headers}\r\n`
    const text = JSON.stringify(body)
    return `${method} ${path} ${headers}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
  }
}

/** Pseudorandom numbers from 0 to 1 (Tommy Ettinger's mulberry32). */
function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}
