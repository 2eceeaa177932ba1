import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { selfSigned } from '../support/certificate.ts'
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
