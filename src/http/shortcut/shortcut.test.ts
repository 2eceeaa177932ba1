import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { takeShortcut } from './shortcut.ts'

const server = createServer({ requireHostHeader: false })
afterAll(() => server.close())

/**
 * Opens a connection that takes the shortcut after its first request. A queued response is sent with the next one, or
 * by `flush`.
 */
async function openWithShortcut() {
  const [clientSide, serverSide] = duplexPair() as [Duplex, Duplex & Socket]
  const queued: string[] = []
  const byNode: string[] = []
  const byShortcut: string[] = []
  let last: IncomingMessage | undefined
  let underWay = 0
  server.removeAllListeners('request').on('request', (request, response) => {
    last = request
    underWay += 1
    response.once('close', () => {
      underWay -= 1
    })
    byNode.push(request.headers['x-request-id'] as string)
    request.resume()
    response.end(`${request.headers['x-request-id']} `)
  })
  let received = ''
  clientSide.setEncoding('latin1').on('data', part => (received += part))
  server.emit('connection', serverSide)
  const flush = () => {
    for (const text of queued.splice(0)) serverSide.write(text)
  }
  const send = async (...parts: string[]) => {
    for (const part of parts) serverSide.emit('data', Buffer.from(part, 'latin1'))
    // A response reaches the other side within eight event-loop turns.
    for (let turn = 0; turn < 8; turn += 1) await setImmediate()
  }
  await send(request('first'))
  takeShortcut(serverSide, {
    lastRequest: () => last,
    isIdle: () => queued.length + underWay === 0,
    answer: ({ request_id = '' }) => {
      byShortcut.push(request_id)
      queued.push(`${request_id} `)
      return true
    },
    flush,
  })
  return { send, flush, byNode, byShortcut, received: () => received, end: () => serverSide.destroy() }
}

const request = (id: string, more = '', body = '') =>
  `POST /v1/people HTTP/1.1\r\nAuthorization: Bearer t\r\nX-Request-Id: ${id}\r\n${more}\r\n${body}`

it('answers a complete request after the parser has read a complete one', async () => {
  const { send, flush, byNode, byShortcut, end } = await openWithShortcut()
  await send(request('second'))
  await send(request('third'))
  flush()
  await send(request('fourth', 'Content-Length: 2\r\n', '{}'))
  expect([byNode, byShortcut]).toEqual([
    ['first', 'second'],
    ['third', 'fourth'],
  ])
  end()
})

it('does not answer the rest of a request that the parser has started, even if it looks like a request', async () => {
  const { send, byNode, byShortcut, end } = await openWithShortcut()
  const inner = request('inner')
  await send(`${request('second')}${request('outer', `Content-Length: ${2 * inner.length}\r\n`)}`, inner, inner)
  await send(request('last'))
  expect([byNode, byShortcut]).toEqual([['first', 'second', 'outer', 'last'], []])
  end()
})

it('gives the connection back to the parser, in order, if a request arrives before a response was sent', async () => {
  const { send, byNode, byShortcut, received, end } = await openWithShortcut()
  await send(request('second'))
  await send(request('third'), request('fourth'), request('fifth'))
  expect([byNode, byShortcut]).toEqual([['first', 'second', 'fourth', 'fifth'], ['third']])
  await expect.poll(received).toMatch(/third HTTP\/1\.1 200[\s\S]*fourth [\s\S]*fifth /)
  end()
})

it('answers each request once and in order, however it is split into parts', async () => {
  const kind = fc.constantFrom(
    ['', ''],
    ['Content-Length: 2\r\n', '{}'],
    ['Transfer-Encoding: chunked\r\n', '0\r\n\r\n'],
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(kind, fc.option(fc.nat(200)), fc.boolean()), { maxLength: 12 }),
      async inputs => {
        const { send, flush, byNode, byShortcut, end } = await openWithShortcut()
        for (const [index, [[more, body], cut, joined]] of inputs.entries()) {
          const text = `${request(`${index}`, more, body)}${joined ? request(`${index}-joined`) : ''}`
          await send(...(cut === null ? [text] : [text.slice(0, cut), text.slice(cut)].filter(part => part !== '')))
          flush()
        }
        const ids = inputs.flatMap(([, , joined], index) => (joined ? [`${index}`, `${index}-joined`] : [`${index}`]))
        expect([...byNode, ...byShortcut].toSorted()).toEqual(['first', ...ids].toSorted())
        end()
      },
    ),
  )
})
