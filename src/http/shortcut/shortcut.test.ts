import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { takeShortcut } from './shortcut.ts'

const server = createServer({ requireHostHeader: false })
afterAll(() => server.close())

/** A connection that takes the shortcut after its first request; `owed` is sent when something else is, or in the end. */
async function openShortened() {
  const [theirs, ours] = duplexPair() as [Duplex, Duplex & Socket]
  const owed: string[] = []
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
  theirs.setEncoding('latin1').on('data', part => (received += part))
  server.emit('connection', ours)
  const settle = () => {
    for (const text of owed.splice(0)) ours.write(text)
  }
  const send = async (...parts: string[]) => {
    for (const part of parts) ours.emit('data', Buffer.from(part, 'latin1'))
    // So many turns an answer takes from its end to the other side.
    for (let turn = 0; turn < 8; turn += 1) await setImmediate()
  }
  await send(request('first'))
  takeShortcut(ours, {
    last: () => last,
    isIdle: () => owed.length + underWay === 0,
    answers: ({ request_id = '' }) => {
      byShortcut.push(request_id)
      owed.push(`${request_id} `)
      return true
    },
    settle,
  })
  return { send, settle, by_node: byNode, by_shortcut: byShortcut, received: () => received, end: () => ours.destroy() }
}

const request = (id: string, more = '', body = '') =>
  `POST /v1/people HTTP/1.1\r\nAuthorization: Bearer t\r\nX-Request-Id: ${id}\r\n${more}\r\n${body}`

it('answers what comes whole, once the parser has had a whole request since', async () => {
  const { send, settle, by_node: byNode, by_shortcut: byShortcut, end } = await openShortened()
  await send(request('second'))
  await send(request('third'))
  settle()
  await send(request('fourth', 'Content-Length: 2\r\n', '{}'))
  expect([byNode, byShortcut]).toEqual([
    ['first', 'second'],
    ['third', 'fourth'],
  ])
  end()
})

it('does not answer the rest of a request that the parser has begun, whatever it looks like', async () => {
  const { send, by_node: byNode, by_shortcut: byShortcut, end } = await openShortened()
  const inner = request('inner')
  await send(`${request('second')}${request('outer', `Content-Length: ${2 * inner.length}\r\n`)}`, inner, inner)
  await send(request('last'))
  expect([byNode, byShortcut]).toEqual([['first', 'second', 'outer', 'last'], []])
  end()
})

it('leaves the connection to the parser for good where another comes before an answer was sent, in order', async () => {
  const { send, by_node: byNode, by_shortcut: byShortcut, received, end } = await openShortened()
  await send(request('second'))
  await send(request('third'), request('fourth'), request('fifth'))
  expect([byNode, byShortcut]).toEqual([['first', 'second', 'fourth', 'fifth'], ['third']])
  await expect.poll(received).toMatch(/third HTTP\/1\.1 200[\s\S]*fourth [\s\S]*fifth /)
  end()
})

it('answers each request once and in order, however they are cut into parts', async () => {
  const kind = fc.constantFrom(
    ['', ''],
    ['Content-Length: 2\r\n', '{}'],
    ['Transfer-Encoding: chunked\r\n', '0\r\n\r\n'],
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(kind, fc.option(fc.nat(200)), fc.boolean()), { maxLength: 12 }), async asked => {
      const { send, settle, by_node: byNode, by_shortcut: byShortcut, end } = await openShortened()
      for (const [index, [[more, body], cut, joined]] of asked.entries()) {
        const text = `${request(`${index}`, more, body)}${joined ? request(`${index}-joined`) : ''}`
        await send(...(cut === null ? [text] : [text.slice(0, cut), text.slice(cut)].filter(part => part !== '')))
        settle()
      }
      const ids = asked.flatMap(([, , joined], index) => (joined ? [`${index}`, `${index}-joined`] : [`${index}`]))
      expect([...byNode, ...byShortcut].toSorted()).toEqual(['first', ...ids].toSorted())
      end()
    }),
  )
})
