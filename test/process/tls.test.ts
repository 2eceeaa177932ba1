import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { endProcesses, exchange, launch, makeFolder, parseAnswer, terminate } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>

beforeEach(async () => {
  database = await createTestDatabase()
})

afterEach(async () => {
  await endProcesses()
  await database.drop()
})

// DER (ITU-T X.690): a tag, a length, the content.
function der(tag: number, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content)
  const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}

const sequence = (...content: Uint8Array[]) => der(0x30, ...content)
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const bits = (content: Uint8Array) => der(0x03, Buffer.from([0]), content)
const time = (moment: Date) => der(0x17, Buffer.from(`${moment.toISOString().replace(/\D/g, '').slice(2, 14)}Z`))

/** A certificate of 127.0.0.1 that its own key has signed (RFC 5280), good for an hour, as PEM. */
function selfSigned(publicKey: KeyObject, privateKey: KeyObject): string {
  const ecdsa_with_sha256 = sequence(oid('2a8648ce3d040302'))
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from('kith test')))))
  const now = Date.now()
  const validity = sequence(time(new Date(now - 3_600_000)), time(new Date(now + 3_600_000)))
  const alternative_name = sequence(oid('551d11'), der(0x04, sequence(der(0x87, Buffer.from([127, 0, 0, 1])))))
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsa_with_sha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(alternative_name)),
  )
  const certificate = sequence(content, ecdsa_with_sha256, bits(sign('sha256', content, privateKey)))
  return `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
}

it.each(['127.0.0.1', '0.0.0.0'])('with the TLS files it serves HTTPS and nothing else on HOST %s', async host => {
  const folder = await makeFolder()
  const [cert_file, key_file] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')]
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const certificate = selfSigned(publicKey, privateKey)
  await writeFile(cert_file, certificate)
  await writeFile(key_file, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const files = { TLS_CERT_FILE: cert_file, TLS_KEY_FILE: key_file }
  const kith = launch({ DATABASE_URL: database.url, HOST: host, ...files })
  const { protocol, hostname, port } = new URL(await kith.ready)
  expect({ protocol, hostname }).toEqual({ protocol: 'https:', hostname: host })

  const asked = get({ host: '127.0.0.1', port, path: '/readyz', ca: certificate, agent: false })
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  expect(answer.statusCode).toBe(200)
  expect(JSON.parse(await text(answer))).toEqual({ status: 'Success', data: { ready: true } })

  const plain = await exchange(`http://127.0.0.1:${port}`, 'GET /readyz HTTP/1.1\r\nHost: kith\r\n\r\n').catch(() => '')
  if (plain !== '') expect(parseAnswer(plain)).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } })
  expect(await terminate(kith)).toBe(0)
})

it('without them it starts on another HOST only behind a proxy that ends TLS', async () => {
  const settings = { DATABASE_URL: database.url, HOST: '0.0.0.0' }
  const refused = launch(settings)
  expect(await refused.ended).toBe(1)
  expect(refused.said.stderr).toMatch(/^The configuration cannot be used:\n {2}- HOST [^\n]*TLS_CERT_FILE[^\n]*\n$/)
  const behind = launch({ ...settings, KITH_BEHIND_PROXY: '1' })
  const { port } = new URL(await behind.ready)
  expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
})
