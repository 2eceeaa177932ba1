import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, get, type RequestOptions } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { selfSigned } from '../support/certificate.ts'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, exchange, launch, makeFolder, parseResponse, terminate } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeEach(async () => {
  database = await createTestDatabase()
})

afterEach(async () => {
  await endProcesses()
  await database.drop()
})

type Pair = { certificate: string; key: string }

function makePair(hours?: number): Pair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    certificate: selfSigned(publicKey, privateKey, hours),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** Writes a pair to files in a new folder. Returns the settings that name them. */
async function writePair({ certificate, key }: Pair) {
  const folder = await makeFolder()
  const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')]
  await writeFile(TLS_CERT_FILE, certificate)
  await writeFile(TLS_KEY_FILE, key)
  return { TLS_CERT_FILE, TLS_KEY_FILE }
}

async function receive(address: string, path: string, ca: string, options: RequestOptions = {}) {
  const request = get({ host: '127.0.0.1', port: new URL(address).port, path, ca, agent: false, ...options })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  return answer
}

/** Sends a GET on a new connection, or on an agent's. The connection fails with any other certificate than `ca`. */
async function sendGet(address: string, path: string, ca: string, options: RequestOptions = {}) {
  const answer = await receive(address, path, ca, options)
  return { status: answer.statusCode, headers: answer.headers, body: JSON.parse(await text(answer)) }
}

const fetchText = async (address: string, path: string, ca: string) => text(await receive(address, path, ca))

it.each(['127.0.0.1', '0.0.0.0'])(
  'serves HTTPS only, within the header limit, on HOST %s, when the TLS files are set',
  async host => {
    const pair = makePair()
    const limit = { KITH_LIMIT_HEADER_BYTES: '2048' }
    const kith = launch({ DATABASE_URL: database.url, HOST: host, ...limit, ...(await writePair(pair)) })
    const address = await kith.ready
    const { protocol, hostname, port } = new URL(address)
    expect({ protocol, hostname }).toEqual({ protocol: 'https:', hostname: host })

    const { status, headers, body } = await sendGet(address, '/readyz', pair.certificate)
    expect({ status, body }).toEqual({ status: 200, body: { status: 'Success', data: { ready: true } } })
    expect(headers['strict-transport-security']).toBe('max-age=31536000')
    const statusWith = async (bytes: number) =>
      (await sendGet(address, '/healthz', pair.certificate, { headers: { 'X-Large': 'x'.repeat(bytes) } })).status
    expect([await statusWith(1_500), await statusWith(2_100)]).toEqual([200, 431])

    const plain = await exchange(`http://127.0.0.1:${port}`, 'GET /readyz HTTP/1.1\r\nHost: kith\r\n\r\n').catch(
      () => '',
    )
    if (plain !== '') expect(parseResponse(plain)).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } })
    expect(await terminate(kith)).toBe(0)
  },
)

it('reloads the certificate at SIGHUP for new connections only, and keeps the old one if a file is malformed, of another pair or missing', async () => {
  const [first, second] = [makePair(), makePair()]
  const files = await writePair(first)
  const kith = launch({ DATABASE_URL: database.url, ...files })
  const address = await kith.ready
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  expect((await sendGet(address, '/healthz', first.certificate, { agent })).status).toBe(200)

  await writeFile(files.TLS_CERT_FILE, second.certificate)
  await writeFile(files.TLS_KEY_FILE, second.key)
  kith.child.kill('SIGHUP')
  await expect.poll(() => kith.output.stdout).toContain('reloaded the TLS certificate')
  expect((await sendGet(address, '/healthz', second.certificate)).status).toBe(200)
  await expect(sendGet(address, '/healthz', first.certificate)).rejects.toThrow()
  expect((await sendGet(address, '/healthz', first.certificate, { agent })).status).toBe(200)
  agent.destroy()

  const refusals = () => kith.output.stdout.match(/TLS_(CERT|KEY)_FILE.*the old certificate stays/g)?.length ?? 0
  const damages = [
    () => writeFile(files.TLS_CERT_FILE, 'half a certif'),
    () => writeFile(files.TLS_CERT_FILE, makePair().certificate),
    () => rm(files.TLS_KEY_FILE),
  ]
  for (const [index, spoil] of damages.entries()) {
    await spoil()
    kith.child.kill('SIGHUP')
    await expect.poll(refusals).toBe(index + 1)
    expect((await sendGet(address, '/healthz', second.certificate)).status).toBe(200)
  }
  expect(await terminate(kith)).toBe(0)
})

it('goes on at SIGHUP if it has no TLS files, as after a reload of its unit', async () => {
  const kith = launch({ DATABASE_URL: database.url })
  const address = await kith.ready
  kith.child.kill('SIGHUP')
  await expect.poll(() => kith.output.stdout).toContain('there are no TLS files to read again')
  expect((await fetch(`${address}/healthz`)).status).toBe(200)
  expect(await terminate(kith)).toBe(0)
})

it('reloads the certificate in every worker at SIGHUP, and reports when the current one ends', async () => {
  const [first, second] = [makePair(2), makePair(200)]
  const endOf = ({ certificate }: Pair) => new X509Certificate(certificate).validToDate.getTime() / 1_000
  const files = await writePair(first)
  const kith = launch({ DATABASE_URL: database.url, ...files }, ['serve', '--workers', '2'])
  const address = await kith.ready
  const reported = async ({ certificate }: Pair) => {
    const response = await fetchText(address, '/metrics', certificate)
    return Number(/^kith_tls_certificate_expiry_timestamp_seconds (.+)$/m.exec(response)?.[1])
  }
  expect(await reported(first)).toBe(endOf(first))
  await writeFile(files.TLS_CERT_FILE, second.certificate)
  await writeFile(files.TLS_KEY_FILE, second.key)
  kith.child.kill('SIGHUP')
  await expect.poll(() => kith.output.stdout.match(/reloaded the TLS certificate/g)?.length).toBe(2)
  for (let turn = 0; turn < 4; turn++) expect((await sendGet(address, '/healthz', second.certificate)).status).toBe(200)
  await expect.poll(() => reported(second)).toBe(endOf(second))
  expect(await terminate(kith)).toBe(0)
})

it('listens on another HOST without TLS files if KITH_BEHIND_PROXY is set', async () => {
  const kith = launch({ DATABASE_URL: database.url, HOST: '0.0.0.0', KITH_BEHIND_PROXY: '1' })
  const { port } = new URL(await kith.ready)
  expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
})
