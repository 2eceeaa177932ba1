import { createHmac, generateKeyPairSync } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { selfSigned } from '../../test/support/certificate.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { createResolve, parseRanges } from './addresses.ts'
import { createSender, type Sender } from './send.ts'

let receiver: Receiver
const closing: (() => Promise<unknown> | unknown)[] = []
beforeEach(async () => {
  receiver = await startReceiver()
  closing.push(() => receiver.close())
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const never = new AbortController().signal
type Options = Partial<Parameters<typeof createSender>[0]>

function makeSender(options: Options = {}): Sender {
  const allowed = parseRanges(['127.0.0.0/8'])
  const sender = createSender({ allowed, resolve: async () => ['127.0.0.1'], timeoutMs: 2_000, ...options })
  closing.push(() => sender.close())
  return sender
}
const messageTo = (url: string, secrets = [secret]) => ({ url, id: 'log:7', body: '{"a":1}', secrets })

function makeCertificate() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { cert: selfSigned(publicKey, privateKey), key: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
}

/** Lets a server listen on a free port, and returns the port. */
async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => server.close())
  return (server.address() as AddressInfo).port
}

describe('a request', () => {
  it('has the headers of the webhook, and the response is kept without their values', async () => {
    receiver.answer = (response, { headers }) => response.end(`no access for ${headers.authorization}`)
    const headers = { authorization: 'Bearer s3cret', 'x-tenant': 'shop' }
    const outcome = await makeSender().send({ ...messageTo(receiver.url), headers }, never)
    expect(receiver.received[0]!.headers).toMatchObject({ ...headers, 'webhook-id': 'log:7' })
    expect(outcome.response).toBe('no access for [header]')
  })

  it('is signed by every secret, by Standard Webhooks', async () => {
    const second = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
    const outcome = await makeSender({ nowMs: () => 1_800_000_000_000 }).send(
      messageTo(receiver.url, [secret, second]),
      never,
    )
    expect(outcome).toMatchObject({ status: 204, response: '' })
    const [{ headers, body }] = receiver.received as [(typeof receiver.received)[0]]
    const sign = (key: Buffer) => createHmac('sha256', key).update(`log:7.1800000000.${body}`).digest('base64')
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': 'log:7',
      'webhook-timestamp': '1800000000',
      'webhook-signature': `v1,${sign(Buffer.alloc(32, 7))} v1,${sign(Buffer.alloc(32, 9))}`,
    })
  })

  it('follows no redirect', async () => {
    const internal = await startReceiver()
    closing.push(() => internal.close())
    const locations = [receiver.url, internal.url, 'http://169.254.169.254/', 'http://[::1]/', '//10.0.0.1/']
    for (const [index, Location] of locations.entries()) {
      receiver.answer = response => response.writeHead(index % 2 === 0 ? 302 : 307, { Location }).end()
      const outcome = await makeSender().send(messageTo(receiver.url), never)
      expect(outcome).toMatchObject({ status: index % 2 === 0 ? 302 : 307 })
    }
    expect([receiver.received.length, internal.received.length]).toEqual([locations.length, 0])
  })

  it('verifies the certificate', async () => {
    const { cert, key } = makeCertificate()
    const server = createTlsServer({ cert, key }, (_, response) => response.end('ok'))
    const port = await listen(server)
    const refused = await makeSender().send(messageTo(`https://127.0.0.1:${port}/`), never)
    expect(refused.status).toBeUndefined()
    expect(refused.error).toMatch(/SELF_SIGNED|UNABLE_TO_VERIFY|CERT/)
    const trusting = await makeSender({ ca: cert }).send(messageTo(`https://127.0.0.1:${port}/`), never)
    expect(trusting).toMatchObject({ status: 200, response: 'ok' })
  })

  it('reports Retry-After in seconds, also of a date', async () => {
    const sender = makeSender({ nowMs: () => Date.parse('2027-01-15T08:00:00Z') })
    const retryAfterOf = async (header: string) => {
      receiver.answer = response => response.writeHead(503, { 'Retry-After': header }).end()
      return (await sender.send(messageTo(receiver.url), never)).retryAfterSeconds
    }
    expect(await retryAfterOf('120')).toBe(120)
    expect(await retryAfterOf('Fri, 15 Jan 2027 08:01:00 GMT')).toBe(60)
    expect(await retryAfterOf('Fri, 15 Jan 2027 07:00:00 GMT')).toBe(0)
    expect(await retryAfterOf('soon')).toBeUndefined()
  })
})

describe('an address', () => {
  it('that a name resolves to is refused unless all of them may be reached', async () => {
    for (const addresses of [['10.0.0.1'], ['::1'], ['93.184.216.34', '169.254.169.254'], ['::ffff:10.0.0.1']]) {
      const sender = makeSender({ allowed: [], resolve: async () => addresses })
      const outcome = await sender.send(messageTo('https://receiver.example/'), never)
      expect(outcome).toMatchObject({ error: 'The host resolves to an address that webhooks may not reach.' })
      expect(outcome.status).toBeUndefined()
    }
  })

  it('is the one that was checked, also of a name that resolves differently the second time', async () => {
    let lookups = 0
    const { cert, key } = makeCertificate()
    let connections = 0
    const server = createTlsServer({ cert, key }, (_, response) => response.writeHead(204).end())
    server.on('connection', () => {
      connections += 1
    })
    const port = await listen(server)
    // The name first leads to an allowed address, and then to a private one where a server listens.
    const resolve = async () => {
      lookups += 1
      return lookups === 1 ? ['127.0.0.1'] : ['127.0.0.2']
    }
    const sender = makeSender({ allowed: parseRanges(['127.0.0.1/32']), resolve, ca: cert })
    const url = `https://receiver.example:${port}/`
    await sender.send(messageTo(url), never)
    expect([lookups, connections]).toEqual([1, 1])
    const again = makeSender({ allowed: parseRanges(['127.0.0.1/32']), resolve, ca: cert })
    expect((await again.send(messageTo(url), never)).error).toMatch(/may not reach/)
    expect([lookups, connections]).toEqual([2, 1])
  })

  it('of a name under .invalid is not looked up', async () => {
    const lookups = [vi.spyOn(Resolver.prototype, 'resolve4'), vi.spyOn(Resolver.prototype, 'resolve6')]
    const sender = makeSender({ resolve: createResolve() })
    for (const url of ['https://receiver.invalid/', 'https://RECEIVER.Invalid./', 'https://invalid/'])
      expect((await sender.send(messageTo(url), never)).error).toBe('The host has no address.')
    expect(lookups.flatMap(({ mock }) => mock.calls)).toEqual([])
    vi.restoreAllMocks()
  })

  it('in the URL is checked each time, without a look-up', async () => {
    const sender = makeSender({ allowed: [] })
    expect((await sender.send(messageTo(receiver.url), never)).error).toMatch(/must be an https URL/)
    expect(receiver.received).toEqual([])
  })
})

describe('a receiver', () => {
  it('that never answers is given up in time', async () => {
    receiver.answer = () => {}
    const outcome = await makeSender({ timeoutMs: 100 }).send(messageTo(receiver.url), never)
    expect(outcome.error).toBe('The receiver did not respond in time.')
  })

  it('that accepts no connection, or closes it, is reported', async () => {
    const port = await listen(createServer(socket => socket.destroy()))
    const closed = await makeSender().send(messageTo(`http://127.0.0.1:${port}/`), never)
    expect(closed.error).toBe('The receiver closed the connection.')
    const nobody = await makeSender().send(messageTo('http://127.0.0.1:1/'), never)
    expect(nobody.error).toBe('The receiver refused the connection.')
  })

  it('that answers with 1 GB is read up to 1 KiB', async () => {
    let sent = 0
    receiver.answer = response => {
      response.writeHead(500)
      const chunk = Buffer.alloc(65_536, 'x')
      const write = () => {
        while (!response.destroyed && sent < 2 ** 30) {
          sent += chunk.length
          if (!response.write(chunk)) return void response.once('drain', write)
        }
      }
      write()
    }
    const outcome = await makeSender().send(messageTo(receiver.url), never)
    expect(outcome).toMatchObject({ status: 500, response: 'x'.repeat(1_024) })
    expect(sent).toBeLessThan(2 ** 26)
  })

  it('that answers a byte at a time keeps its status, and is cut off', async () => {
    receiver.answer = response => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('x'), 10)
      response.on('close', () => clearInterval(timer))
    }
    const outcome = await makeSender({ timeoutMs: 200 }).send(messageTo(receiver.url), never)
    expect(outcome.status).toBe(200)
    expect(outcome.response).toMatch(/^x+$/)
  })

  it('that sends a head byte by byte, or an endless one, is given up', async () => {
    const slow = await listen(
      createServer(socket => {
        const timer = setInterval(() => socket.write('H'), 10)
        socket.on('error', () => {}).on('close', () => clearInterval(timer))
      }),
    )
    const endless = await listen(
      createServer(socket => {
        socket.on('error', () => {})
        socket.write('HTTP/1.1 200 OK\r\n')
        const timer = setInterval(() => socket.write(`X: ${'y'.repeat(8_192)}\r\n`), 1)
        socket.on('close', () => clearInterval(timer))
      }),
    )
    for (const port of [slow, endless]) {
      const outcome = await makeSender({ timeoutMs: 300 }).send(messageTo(`http://127.0.0.1:${port}/`), never)
      expect(outcome.status).toBeUndefined()
      expect(outcome.error).toBeTruthy()
    }
  })

  it('whose response is no text is stored as text', async () => {
    receiver.answer = response => response.writeHead(500).end(Buffer.from([0, 255, 97]))
    const { response } = await makeSender().send(messageTo(receiver.url), never)
    expect(response).toBe('\u{fffd}\u{fffd}a')
  })
})
