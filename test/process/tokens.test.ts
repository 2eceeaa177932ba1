import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { selfSigned } from '../support/certificate.ts'
import { runInProcess } from '../support/command.ts'
import { createTestDatabase } from '../support/database.ts'
import { encode } from '../support/gate.ts'
import { endProcesses, launch, makeFolder, senderTo, tokenFrom } from '../support/process.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let settings: { DATABASE_URL: string }

beforeEach(async () => {
  database = await createTestDatabase()
  settings = { DATABASE_URL: database.url }
})

afterEach(async () => {
  await endProcesses()
  await database.drop()
})

const run = async (...words: string[]) => {
  const result = await runInProcess(words, settings)
  expect(result.code, result.stderr).toBe(0)
  return result
}

describe('kith keys rotate with running servers', () => {
  it('keeps tokens in use valid, and every server takes tokens of the new key at once', {
    timeout: 120_000,
  }, async () => {
    const addresses = await Promise.all([launch(settings).ready, launch(settings).ready])
    const tokens = [await tokenFrom(settings)]
    let rotating = true
    let requestCount = 0
    const refused: unknown[] = []
    const sendRead = async (address: string, token: string) => {
      const { status, body } = await senderTo(address, token)('GET', '/v1/schema')
      requestCount++
      if (status !== 200) refused.push([status, body])
    }
    const users = addresses.map(async address => {
      // Without a pause, the requests would take the processors from the commands.
      for (; rotating; await setTimeout(10)) await Promise.all(tokens.map(token => sendRead(address, token)))
    })
    for (let rotation = 0; rotation < 3; rotation++) {
      await run('keys', 'rotate')
      tokens.push(await tokenFrom(settings))
      await Promise.all(addresses.map(address => sendRead(address, tokens.at(-1)!)))
    }
    rotating = false
    await Promise.all(users)
    console.log(`${requestCount} requests with tokens of ${tokens.length} keys during three rotations`)
    expect(refused).toEqual([])
    const kids = new Set(tokens.map(token => token.split('.')[0]))
    expect(kids.size).toBe(4)
    const jwks = (await (await fetch(`${addresses[0]}/.well-known/jwks.json`)).json()) as { keys: unknown[] }
    expect(jwks.keys).toHaveLength(4)
  })
})

it('creates a client whose credentials a running server takes at POST /oauth/token until it is revoked', async () => {
  const address = await launch(settings).ready
  const { stdout } = await run('client', 'create', '--org', 'default', '--scope', 'schema:read')
  const form = `grant_type=client_credentials&${stdout.trim().replace('\n', '&')}`
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const fetchToken = () => fetch(`${address}/oauth/token`, { method: 'POST', headers, body: form })
  const { access_token } = (await (await fetchToken()).json()) as { access_token: string }
  expect((await senderTo(address, access_token)('GET', '/v1/schema')).status).toBe(200)
  await run('client', 'revoke', /client_id=(\S+)/.exec(stdout)![1]!, '--yes')
  expect((await fetchToken()).status).toBe(401)
  const send = senderTo(address, access_token)
  await expect.poll(async () => (await send('GET', '/v1/schema')).status, { timeout: 20_000 }).toBe(401)
})

describe('an outside issuer', () => {
  const tls = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const certificate = selfSigned(tls.publicKey, tls.privateKey)
  const signing = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  let issuer: Server
  let environment: Record<string, string>

  beforeEach(async () => {
    const key = tls.privateKey.export({ type: 'pkcs8', format: 'pem' })
    const set = { keys: [{ ...signing.publicKey.export({ format: 'jwk' }), kid: 'outside', use: 'sig' }] }
    issuer = createServer({ cert: certificate, key }, (_, response) => response.end(JSON.stringify(set)))
    issuer.listen(0, '127.0.0.1')
    await once(issuer, 'listening')
    environment = {
      ...settings,
      AUTH_ISSUER: 'https://issuer.example',
      AUTH_JWKS_URL: `https://127.0.0.1:${(issuer.address() as AddressInfo).port}/jwks.json`,
      AUTH_AUDIENCE: 'crm',
    }
  })
  afterEach(() => issuer.close())

  function signToken() {
    const exp = Math.floor(Date.now() / 1_000) + 600
    const claims = { iss: 'https://issuer.example', aud: 'crm', sub: 'ada', org: 'default', scope: 'schema:read', exp }
    const signed = `${encode({ alg: 'RS256', kid: 'outside' })}.${encode(claims)}`
    return `${signed}.${sign('sha256', Buffer.from(signed), signing.privateKey).toString('base64url')}`
  }

  it('is trusted over https if its certificate is trusted', async () => {
    const folder = await makeFolder()
    const file = join(folder, 'issuer.pem')
    await writeFile(file, certificate)
    const address = await launch({ ...environment, NODE_EXTRA_CA_CERTS: file }).ready
    expect((await senderTo(address, signToken())('GET', '/v1/schema')).status).toBe(200)
  })

  it('is not trusted with an untrusted certificate: the log says why, and own tokens still work', async () => {
    const kith = launch(environment)
    const address = await kith.ready
    const { status, headers, body } = await senderTo(address, signToken())('GET', '/v1/schema')
    expect([status, body.error, headers.get('retry-after')]).toEqual([503, 'operation_failed', '30'])
    const reason = /"msg":"the keys of the outside issuer cannot be read: [^"]*self-signed certificate/
    // The response may arrive before the log line.
    await expect.poll(() => kith.output.stdout).toMatch(reason)
    expect((await senderTo(address, await tokenFrom(settings))('GET', '/v1/schema')).status).toBe(200)
  })
})
