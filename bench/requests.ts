/** A request of a load. */
export type BenchRequest = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  body?: object
  headers?: Record<string, string>
}

/** Where requests are sent, and the token that they have. */
export type Target = { address: string; token: string }

export const headersOf = ({ token }: Target, { headers, body }: BenchRequest): Record<string, string> => ({
  Authorization: `Bearer ${token}`,
  ...(body && { 'Content-Type': 'application/json' }),
  ...headers,
})

/** A response that is not a success. */
export class UnexpectedResponse extends Error {
  readonly status: number

  constructor({ method, path }: BenchRequest, status: number, text: string) {
    super(`${method} ${path} was answered with ${status}: ${text.slice(0, 500)}`)
    this.status = status
  }
}

/** Sends a request and returns the text of its response. Throws {@link UnexpectedResponse} unless it succeeds. */
export async function askText(target: Target, request: BenchRequest): Promise<string> {
  const { method, path, body } = request
  const response = await fetch(target.address + path, {
    method,
    headers: headersOf(target, request),
    body: body ? JSON.stringify(body) : null,
  })
  const text = await response.text()
  if (!response.ok) throw new UnexpectedResponse(request, response.status, text)
  return text
}

/** Sends a request to kith and returns the `data` of its response. Throws {@link UnexpectedResponse} unless it succeeds. */
export const ask = async <T>(target: Target, request: BenchRequest): Promise<T> =>
  (JSON.parse(await askText(target, request)) as { data: T }).data

/** Imports people, each a line. Throws unless all lines end with `result`. Returns their number. */
export const importPeople = (target: Target, lines: readonly string[], result: string, query = '') =>
  importLines(target, `/v1/people/import${query}`, lines, result)

/** Imports entities, each a line. Throws unless all lines end with `result`. Returns their number. */
export async function importLines(target: Target, path: string, lines: readonly string[], result: string) {
  const response = await fetch(target.address + path, {
    method: 'POST',
    headers: { Authorization: `Bearer ${target.token}`, 'Content-Type': 'application/x-ndjson' },
    body: lines.join(''),
  })
  const text = await response.text()
  if (!response.ok) throw new UnexpectedResponse({ method: 'POST', path }, response.status, text)
  const summary = JSON.parse(text.trim().split('\n').at(-1)!) as Record<string, number>
  if (summary[result] !== lines.length) throw new Error(`Not all entities were ${result}: ${JSON.stringify(summary)}`)
  return lines.length
}

/** The text of a request as HTTP/1.1. */
export function formatRequest(target: Target, request: BenchRequest): string {
  const { method, path, body } = request
  const text = body ? JSON.stringify(body) : ''
  const lines = Object.entries({
    Host: new URL(target.address).host,
    ...headersOf(target, request),
    ...(body && { 'Content-Length': `${Buffer.byteLength(text)}` }),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`
}
