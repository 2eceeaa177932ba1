import { Agent, request } from 'node:http'
import { openApiDocument } from '../../src/app.ts'
import { createContractCheck } from '../support/contract.ts'
import type { Reply, Service } from '../support/service.ts'

/** One request as its bytes will be: nothing is normalized, escaped or added but the token and the length. */
export type Ask = {
  method: string
  path: string
  body?: string | Buffer | undefined
  headers?: Record<string, string> | undefined
}

/** `text` is the body as it came. */
export type Answer = { status: number; headers: Record<string, string>; text: string; body: Reply['body'] }

export type Sender = { ask(token: string, asked: Ask): Promise<Answer>; close(): void }

/** Sends requests as they are, over connections that stay open; every answer is held to the document. */
export function createSender({ address, config }: Pick<Service, 'address' | 'config'>): Sender {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const hold = createContractCheck(() => openApiDocument({ config }))
  return {
    close: () => agent.destroy(),
    async ask(token, asked) {
      const answer = await exchange(agent, address, token, asked)
      hold({ method: asked.method, path: asked.path, status: answer.status, body: answer.body })
      return answer
    },
  }
}

function exchange(agent: Agent, address: string, token: string, asked: Ask): Promise<Answer> {
  const { method, path, body, headers } = asked
  const { hostname, port } = new URL(address)
  const sent = {
    ...(token !== '' && { Authorization: `Bearer ${token}` }),
    ...(body !== undefined && {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
    }),
    ...headers,
  }
  return new Promise((resolve, reject) => {
    const sending = request({ agent, hostname, port, method, path, headers: sent }, response => {
      const parts: Buffer[] = []
      response.on('data', part => parts.push(part))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(parts).toString()
        const status = response.statusCode ?? 0
        const headers = response.headers as Record<string, string>
        resolve({ status, headers, text, body: parsed(text, headers) })
      })
    })
    sending.on('error', reject)
    sending.end(body)
  })
}

function parsed(text: string, headers: Record<string, string>): Reply['body'] {
  if (text === '') return {}
  if (headers['content-type']?.startsWith('text/plain')) return text as never
  // Of lines of JSON the last.
  return JSON.parse(text.trimEnd().split('\n').at(-1)!)
}
