import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { parseRanges } from '../../src/webhooks/addresses.ts'
import { createSender, type Sender } from '../../src/webhooks/send.ts'

/** A request that the receiver got. */
export type Received = {
  headers: IncomingHttpHeaders
  body: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field of an event
  event: any
  id: string
  sequence: number
}

export type Receiver = {
  url: string
  received: Received[]
  /** Answers a request. The default is 204. */
  answer: (response: ServerResponse, received: Received) => unknown
  /** The highest number of requests under way at a time. */
  maxConcurrent(): number
  close(): Promise<void>
}

/** Starts a receiver of webhooks on loopback that records every request. */
export async function startReceiver(): Promise<Receiver> {
  let current = 0
  let most = 0
  const server = createServer(async (request, response) => {
    current += 1
    most = Math.max(most, current)
    response.on('close', () => {
      current -= 1
    })
    const body = await text(request).catch(() => '')
    if (body === '') return
    const id = String(request.headers['webhook-id'])
    const event = JSON.parse(body)
    const received = { headers: request.headers, body, event, id, sequence: Number(id.split(':')[1]) }
    receiver.received.push(received)
    await receiver.answer(response, received)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received: [],
    answer: response => response.writeHead(204).end(),
    maxConcurrent: () => most,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return receiver
}

/** Creates a sender of webhooks that reaches only loopback, and resolves no name. */
export const createLoopbackSender = (options: { timeoutMs?: number; nowMs?: () => number } = {}): Sender =>
  createSender({ allowed: parseRanges(['127.0.0.0/8']), resolve: async () => [], ...options })
