import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { beforeAll, expect, it } from 'vitest'
import { useOwnService } from '../../../test/support/service.ts'
import { type Credentials, createClient } from '../../auth/clients.ts'

const service = useOwnService()
let client: Credentials
let personToken: string
beforeAll(async () => {
  const { key, token } = await service.organization()
  client = await createClient(service.db, { organizationKey: key, name: 'shop', scope: 'people:read' })
  personToken = token
})

/** Opens a connection from a local address that sends the head of a request and one byte of its body. */
async function sendSlowly(localAddress: string, path: string): Promise<Socket> {
  const { hostname: host, port } = new URL(service.address)
  const socket = connect({ host, port: Number(port), localAddress })
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\nOrigin: ${service.address}\r\nContent-Length: 5000\r\n\r\nx`,
  )
  return socket
}

it('lets 400 clients outside /v1 send their bodies slowly for two seconds, and keeps no other client waiting', async () => {
  const paths = ['/oauth/token', '/u/x', '/console/session']
  // Half of them have separate addresses, and half share the address of the other clients.
  const opening = Array.from({ length: 400 }, (_, index) =>
    sendSlowly(index < 200 ? `127.0.1.${index}` : '127.0.0.1', paths[index % paths.length]!),
  )
  const answers = (await Promise.all(opening)).map(socket => once(socket.setEncoding('latin1'), 'data'))
  let slow: unknown[][] | undefined
  const ended = Promise.all(answers).then(all => {
    slow = all
  })
  const form = { grant_type: 'client_credentials', ...client }
  const others: [path: string, status: number, init?: RequestInit][] = [
    ['/healthz', 200],
    ['/readyz', 200],
    ['/metrics', 200],
    ['/.well-known/jwks.json', 200],
    ['/u/x', 404],
    ['/console/session', 200],
    ['/oauth/token', 200, { method: 'POST', body: new URLSearchParams(form) }],
    ['/v1/people/ada', 404, { headers: { Authorization: `Bearer ${personToken}` } }],
  ]
  const statuses: Record<string, Set<number>> = {}
  for (let round = 0; round < 3 || !slow; round += 1)
    for (const [path, , init] of others) {
      const response = await fetch(`${service.address}${path}`, init)
      await response.text()
      statuses[path] = (statuses[path] ?? new Set()).add(response.status)
    }
  await ended
  expect(statuses).toEqual(Object.fromEntries(others.map(([path, status]) => [path, new Set([status])])))
  for (const [answer] of slow!) expect(answer).toMatch(/^HTTP\/1\.1 504 (.*\r\n)+connection: close\r\n/i)
})
