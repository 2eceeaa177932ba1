import type { Load } from './load.ts'

type Asked = { method: string; path: string; body?: object }
type Draw = { person: string; fresh: string }

/** What is asked, and how many in a hundred: every way through the service that a page of contacts takes. */
const works: Record<Load['work'], [share: number, ask: (draw: Draw) => Asked][]> = {
  patch: [[100, patch]],
  mixed: [
    [45, patch],
    [25, ({ person }) => ({ method: 'GET', path: `/v1/people/${person}` })],
    [15, ({ fresh }) => ({ method: 'POST', path: '/v1/people', body: { external_id: fresh, first_name: 'Ada' } })],
    [10, upsert],
    [5, filter],
  ],
  slowFilters: [[100, slowFilter]],
}

// Another name each time: what changes nothing would be answered without a write.
function patch({ person, fresh }: Draw): Asked {
  return { method: 'PATCH', path: `/v1/people/${person}`, body: { first_name: fresh, last_name: 'Lovelace' } }
}

function upsert({ person, fresh }: Draw): Asked {
  const body = { external_id: person, last_name: fresh, attribute_values: { city: fresh } }
  return { method: 'POST', path: '/v1/people/upsert', body }
}

function filter({ person }: Draw): Asked {
  const body = { filter: { external_id: { $in: [person, 'p1', 'p2'] } }, cursor_configuration: { size: 20 } }
  return { method: 'POST', path: '/v1/people/filter', body }
}

/** Every person's friends' friends are read, 64 texts each, and none matches. */
function slowFilter(): Asked {
  const friends = (of: object) => ({ 'attribute_values.friends': { $some: of } })
  const body = { filter: friends(friends({ 'attribute_values.note': { $contains: 'nowhere' } })) }
  return { method: 'POST', path: '/v1/people/filter', body }
}

/** Gives one request after the other, as text. The same seed gives the same requests in the same order. */
export function createRequests({ address, token, people, seed, work }: Load): () => string {
  const random = mulberry32(seed)
  const asks = works[work].flatMap(([share, ask]) => new Array<(draw: Draw) => Asked>(share).fill(ask))
  const headers = `HTTP/1.1\r\nHost: ${new URL(address).host}\r\nAuthorization: Bearer ${token}\r\n`
  let count = 0
  return () => {
    count += 1
    const draw = { person: `p${1 + Math.floor(random() * people)}`, fresh: `f${seed}-${count}` }
    const { method, path, body } = asks[Math.floor(random() * asks.length)]!(draw)
    if (!body) return `${method} ${path} ${headers}\r\n`
    const text = JSON.stringify(body)
    return `${method} ${path} ${headers}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
  }
}

/** Numbers from 0 to 1 (Tommy Ettinger's mulberry32). */
function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
