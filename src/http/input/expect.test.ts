import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { openSocket, parseResponse } from '../../../test/support/process.ts'
import { useService } from '../../../test/support/service.ts'
import { useSharedShop } from '../../../test/support/shop.ts'

const service = useService()
const organization = useSharedShop(service)

const json = 'Content-Type: application/json'
const lines = 'Content-Type: application/x-ndjson'
const megabytes = (count: number) => `Content-Length: ${count * 1_000_000}`

/** Opens a connection and sends the head of a request that waits for 100 Continue. */
async function offerBody(line: string, headers: string[]) {
  const socket = await openSocket(service.address)
  socket.setEncoding('latin1')
  socket.write(`${[line, 'Host: kith', 'Expect: 100-continue', ...headers].join('\r\n')}\r\n\r\n`)
  return socket
}

describe('a request with Expect: 100-continue', () => {
  it.each([
    ['without a token', 401, 'POST /v1/people HTTP/1.1', [json, megabytes(300)]],
    ['without a token, for an import', 401, 'POST /v1/people/import HTTP/1.1', [lines, megabytes(300)]],
    ['without a known path', 401, 'POST /v1/nothing HTTP/1.1', [json, megabytes(300)]],
    ['outside /v1, without a known path', 404, 'POST /nothing HTTP/1.1', [json, megabytes(300)]],
    [
      'with a body that is too large to end a session',
      413,
      'DELETE /console/session HTTP/1.1',
      ['Content-Length: 20000'],
    ],
    ['with a body that is too large', 413, 'POST /oauth/token HTTP/1.1', [megabytes(300)]],
  ])('is refused %s before its body, and its connection closes', async (_, status, line, headers) => {
    const answer = await text(await offerBody(line, headers))
    expect(parseResponse(answer).status).toBe(status)
    expect(answer).toMatch(/^connection: close\r$/im)
  })

  it.each([
    ['a body', 'POST /v1/people HTTP/1.1', json, '{"external_id":"ada"}', 201],
    ['an import', 'POST /v1/people/import HTTP/1.1', lines, '{"external_id":"bo"}\n', 200],
  ])('is asked for %s once, and then answered', async (_, line, contentType, body, status) => {
    const headers = [`Authorization: Bearer ${organization.token}`, contentType, `Content-Length: ${body.length}`]
    const socket = await offerBody(line, [...headers, 'Connection: close'])
    // The head of an import's response may arrive before its body.
    const first = String((await once(socket, 'data'))[0])
    socket.write(body)
    const answer = first + (await text(socket))
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 ${status} `))
  })
})
