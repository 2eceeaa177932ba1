import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A receiver of webhooks on loopback. It does not keep the process from ending. */
export type BenchReceiver = { url: string; count(): number; untilCount(count: number): Promise<void> }

export async function startReceiver(): Promise<BenchReceiver> {
  let received = 0
  let onRequest = () => {}
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(204).end()
      received += 1
      onRequest()
    })
  })
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    count: () => received,
    untilCount: async count => {
      while (received < count) {
        const { promise, resolve } = Promise.withResolvers<void>()
        onRequest = resolve
        await promise
      }
    },
  }
}
