import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createClient } from '../src/auth/clients.ts'
import { selfSigned } from '../test/support/certificate.ts'
import { runInProcess } from '../test/support/command.ts'
import { type Organization, useService } from '../test/support/service.ts'

const service = useService()
let folder: string
let organization: Organization
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-api-'))
})
afterAll(() => rm(folder, { recursive: true }))
beforeEach(async () => {
  organization = await service.organization()
})

const environment = () => ({ KITH_URL: service.address, KITH_TOKEN: organization.token })
const api = (...words: string[]) => runInProcess(['api', ...words], environment(), folder)
/** Runs `kith api` with this standard input. */
const apiOf = (input: string, ...words: string[]) => runInProcess(['api', ...words], environment(), folder, input)

describe('kith api', () => {
  it('prints the body on standard output and the status on standard error', async () => {
    const created = await api('post', '/v1/people', '--body', '{"external_id":"ada"}')
    expect([created.code, created.stderr]).toEqual([0, '201 Created\n'])
    expect(JSON.parse(created.stdout).data.external_id).toBe('ada')
    expect(await api('DELETE', '/v1/people/ada')).toMatchObject({ code: 0, stderr: '200 OK\n' })
  })

  it('prints a refusal unchanged, and exits with 1', async () => {
    const { code, stdout, stderr } = await api('GET', '/v1/people/nobody?x=1', '--header', 'X-Request-Id: my-request')
    const { status, headers, body } = await organization.send('GET', '/v1/people/nobody?x=1', undefined, {
      'X-Request-Id': 'my-request',
    })
    expect([code, stderr]).toEqual([1, `${status} ${status === 404 ? 'Not Found' : 'Bad Request'}\n`])
    expect(JSON.parse(stdout)).toEqual(body)
    expect(headers.get('x-request-id')).toBe('my-request')
  })

  it('sends a file or standard input as the body, and streams the response', async () => {
    await writeFile(join(folder, 'people.ndjson'), '{"external_id":"ada"}\n{"external_id":"grace"}\n')
    const type = ['--header', 'content-type: application/x-ndjson']
    const imported = await api('POST', '/v1/people/import', '--body', '@people.ndjson', ...type)
    expect([imported.code, imported.stdout]).toEqual([0, expect.stringContaining('"created":2')])
    expect((await apiOf('{"first_name":"Ada"}', 'PATCH', '/v1/people/ada', '--body', '-')).code).toBe(0)
    expect((await organization.client.people.get('ada')).first_name).toBe('Ada')
    const exported = await api('POST', '/v1/people/export')
    expect(exported.stdout.trimEnd().split('\n')).toHaveLength(2)
  })

  it('fetches a token with the credentials of a client', async () => {
    const options = { organizationKey: organization.key, scope: 'schema:read', name: '' }
    const { client_id, client_secret } = await createClient(service.db, options)
    const credentials = { KITH_URL: service.address, KITH_CLIENT_ID: client_id, KITH_CLIENT_SECRET: client_secret }
    const { code, stdout } = await runInProcess(['api', 'GET', '/v1/organization'], credentials)
    expect([code, JSON.parse(stdout).data.key]).toEqual([0, organization.key])
  })

  it('sends each header, follows no redirect, and reports a response that is cut off', async () => {
    const received: IncomingHttpHeaders[] = []
    const server = createServer((request, response) => {
      received.push(request.headers)
      if (request.url === '/moved') return void response.writeHead(302, { Location: '/elsewhere' }).end()
      response.writeHead(200, { 'Content-Length': '100' }).write('half')
      setImmediate(() => response.destroy())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const send = (path: string) =>
      runInProcess(['api', 'GET', path, '--header', 'A: 1', '--header', 'A: 2'], { KITH_URL: url, KITH_TOKEN: 't' })
    expect(await send('/moved')).toMatchObject({ code: 0, stderr: '302 Found\n' })
    expect(received).toMatchObject([{ a: '1, 2', authorization: 'Bearer t' }])
    const cut = await send('/')
    expect(cut).toMatchObject({ code: 1, stderr: expect.stringContaining('before the end of the response') })
    await once(server.close(), 'close')
    expect(await send('/')).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be reached') })
    expect(await runInProcess(['people', 'count'], { KITH_URL: url, KITH_TOKEN: 't' })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /cannot be reached.* Start the service, or name its address with --url or KITH_URL/,
      ),
    })
  })

  it('says what to do if the certificate of the service is not trusted', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const cert = selfSigned(publicKey, privateKey)
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const server = createTlsServer({ cert, key }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect(await runInProcess(['people', 'count'], { KITH_URL: url, KITH_TOKEN: 't' })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/SELF_SIGNED.* NODE_EXTRA_CA_CERTS names a file with that of the issuer\./),
    })
    await once(server.close(), 'close')
  })

  it.each([
    ['an unknown method', ['FETCH', '/v1/people']],
    ['a path without a slash', ['GET', 'v1/people']],
    ['a header without a name', ['GET', '/v1/people', '--header', ': x']],
    ['a header without a value', ['GET', '/v1/people', '--header', 'x']],
    ['a file that does not exist', ['POST', '/v1/people', '--body', '@nothing.json']],
    ['no path', ['GET']],
    ['a body that the method cannot have', ['GET', '/v1/people/ada', '--body', '{}']],
  ])('refuses %s as wrong usage', async (_, words) => {
    expect(await api(...words)).toMatchObject({ code: 2, stdout: '' })
  })

  it('does not print a malformed token', async () => {
    const settings = { KITH_URL: service.address, KITH_TOKEN: 'sécret token' }
    const { code, stderr } = await runInProcess(['api', 'GET', '/v1/people'], settings)
    expect(code).toBe(1)
    expect(stderr).not.toContain('cret')
  })
})
