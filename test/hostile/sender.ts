import { Agent, request } from 'node:http'
import { parseExactly } from '../../src/values/parse-json.ts'
import type { Reply, Service } from '../support/service.ts'
import { ndjsonType } from './operations.ts'

/** A request that is sent unmodified. The sender adds only the token, the content type and the length. */
export type RawRequest = {
  method: string
  path: string
  body?: string | Buffer | undefined
  headers?: Record<string, string> | undefined
}

/** A response. `text` is the body as received, and `body` its value, or that of its last line. */
export type RawResponse = { status: number; headers: Record<string, string>; text: string; body: Reply['body'] }

export type Sender = { send(token: string, rawRequest: RawRequest): Promise<RawResponse>; close(): void }

/** Creates a sender with keep-alive connections, which validates every response against the OpenAPI document. */
export function createSender({ address, checkResponse }: Pick<Service, 'address' | 'checkResponse'>): Sender {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  return {
    close: () => agent.destroy(),
    async send(token, rawRequest) {
      const rawResponse = await exchange(agent, address, token, rawRequest)
      const { method, path } = rawRequest
      const { status, headers } = rawResponse
      const contentType = headers['content-type']
      const bodies = contentType === ndjsonType ? linesOf(rawResponse) : [rawResponse.body]
      for (const body of bodies) checkResponse({ method, path, status, body, ...(contentType && { contentType }) })
      return rawResponse
    },
  }
}

function exchange(agent: Agent, address: string, token: string, rawRequest: RawRequest): Promise<RawResponse> {
  const { method, path, body, headers } = rawRequest
  const { hostname, port } = new URL(address)
  const sentHeaders = {
    ...(token !== '' && { Authorization: `Bearer ${token}` }),
    ...(body !== undefined && {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
    }),
    ...headers,
  }
  return new Promise((resolve, reject) => {
    const clientRequest = request({ agent, hostname, port, method, path, headers: sentHeaders }, response => {
      const parts: Buffer[] = []
      response.on('data', part => parts.push(part))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(parts).toString()
        const status = response.statusCode ?? 0
        const headers = response.headers as Record<string, string>
        resolve({ status, headers, text, body: parseBody(text, headers) })
      })
    })
    clientRequest.on('error', reject)
    clientRequest.end(body)
  })
}

/** The values of the lines of a response. */
export const linesOf = ({ text }: Pick<RawResponse, 'text'>): unknown[] =>
  text
    .split('\n')
    .filter(line => line !== '')
    .map(parseExactly)

function parseBody(text: string, headers: Record<string, string>): Reply['body'] {
  if (text === '') return {}
  if (/^(text\/plain|application\/octet-stream)/.test(headers['content-type'] ?? '')) return text as never
  // For an NDJSON response, only the last line is parsed. After hostile keys, JSON.parse may confuse keys (parse-json.ts).
  return parseExactly(text.trimEnd().split('\n').at(-1)!) as Reply['body']
}
