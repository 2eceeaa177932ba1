import { createHmac, createPrivateKey, randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useFolder } from '../../test/support/command.ts'
import { requestPage } from '../../test/support/pages.ts'
import { type Receiver, startReceiver } from '../../test/support/receiver.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { issueToken } from '../auth/token.ts'
import { parseLink, signLink } from '../consent-links/token.ts'
import { type Database, openDatabase } from '../db/db.ts'
import { createMasterKeys, masterKeyOf, noMasterKeys, rowOf } from '../db/master-keys.ts'
import { readLedgerSigner } from '../ledger/keys.ts'
import { loadConfig } from '../process/config.ts'
import { makeKeyFile, openMasterKeys } from './key-file.ts'
import { ensureMasterKey, rewrapAll } from './keys-at-rest.ts'

const folder = useFolder()
const file = join(folder, 'keys')
const newKey = () => randomBytes(32).toString('base64')
const writeKeys = (...keys: string[]) => writeFile(file, `# master keys\n\n${keys.join('\n')}\n`, { mode: 0o600 })
const firstKey = newKey()
beforeAll(() => writeKeys(firstKey))
const service = useOwnService({ KITH_MASTER_KEY_FILE: file, KITH_WEBHOOK_ALLOW: '127.0.0.0/8' })

const mailgunSecret = 'mailgun-signing-key-of-the-test'
const headerValue = 'Bearer of-the-gateway'
let organization: Organization
let receiver: Receiver
let webhookSecret: string
let postmarkPath: string
let link: string
const ok = async (method: string, path: string, body?: object) => {
  const reply = await organization.send(method, path, body)
  expect([path, reply.status, reply.body.message]).toEqual([path, expect.toBeOneOf([200, 201, 204]), undefined])
  return reply.body.data
}
beforeAll(async () => {
  receiver = await startReceiver()
  organization = await service.organization()
  await ok('POST', '/v1/people', { external_id: 'ada', email: 'ada@example.com' })
  const webhook = { url: receiver.url, events: ['person.*'], headers: { authorization: headerValue } }
  webhookSecret = (await ok('POST', '/v1/webhooks', webhook)).secret
  await ok('POST', '/v1/deliverability/sources', { key: 'mg', provider: 'mailgun', secret: mailgunSecret })
  postmarkPath = (await ok('POST', '/v1/deliverability/sources', { key: 'pm', provider: 'postmark' })).path
  link = (await ok('POST', '/v1/people/ada/consent-links', {})).preferences_url
})
afterAll(() => receiver.close())

/** The rows as a dump contains them. */
type Dump = {
  signing: { kid: string; private_jwk: unknown }
  ledger: { kid: string; private_jwk: unknown }
  link: { id: number; secret: Buffer }
  webhook: { secrets: unknown; headers: Record<string, string> }
  sources: { key: string; secret_path: string; secret: string | null }[]
}
async function dump(): Promise<Dump> {
  const one = async (text: string) => (await service.sql<Record<string, unknown>>(text))[0] as never
  const { id } = organization
  return {
    signing: await one('select kid, private_jwk from signing_keys where private_jwk is not null'),
    ledger: await one('select kid, private_jwk from ledger_keys where private_jwk is not null'),
    link: await one(`select id, secret from link_keys where organization_id = ${id}`),
    webhook: await one(`select secrets, headers from webhooks where organization_id = ${id}`),
    sources: await service.sql(
      'select key, secret_path, secret from deliverability_sources where organization_id = $1 order by key',
      [id],
    ),
  }
}

/** Expects that everything that needs a secret works, with the database of this process or another. */
async function expectWorking(db: Database = service.db) {
  const token = await issueToken(db, {
    organizationKey: organization.key,
    scope: 'people:read',
    subject: 'x',
    ttlSeconds: 60,
  })
  expect((await service.sender(token)('GET', '/v1/people/ada')).status).toBe(200)
  expect((await requestPage(link)).status).toBe(200)
  expect((await readLedgerSigner(db)).privateKey.asymmetricKeyType).toBe('ed25519')
  receiver.received.length = 0
  expect(await ok('POST', '/v1/webhooks/1/test')).toMatchObject({ delivered: true })
  const { headers, body } = receiver.received[0]!
  expect(headers.authorization).toBe(headerValue)
  new Webhook(webhookSecret).verify(body, headers as Record<string, string>)
  expect(await ok('GET', '/v1/deliverability/sources')).toMatchObject({
    items: [{ key: 'mg' }, { key: 'pm', path: postmarkPath }],
  })
  expect((await sendPostmark(postmarkPath)).status).toBe(200)
  expect((await sendMailgun(mailgunSecret)).status).toBe(200)
}

const post = (path: string, body: object) =>
  fetch(`${service.address}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
const sendPostmark = (path: string) =>
  post(path, {
    RecordType: 'Bounce',
    MessageID: 'm',
    Email: 'x@example.com',
    Type: 'HardBounce',
    BouncedAt: new Date(),
  })
async function sendMailgun(key: string) {
  const { items } = await ok('GET', '/v1/deliverability/sources')
  const [timestamp, token] = [String(Math.floor(Date.now() / 1_000)), randomBytes(25).toString('hex')]
  const signature = createHmac('sha256', key).update(`${timestamp}${token}`).digest('hex')
  const event = { event: 'delivered', recipient: 'x@example.com', timestamp: Number(timestamp), id: token }
  return post(items[0].path, { signature: { timestamp, token, signature }, 'event-data': event })
}

describe('the secrets in the database', () => {
  it('are wrapped, all of them, and the service works with them', async () => {
    const { signing, ledger, link: linkKey, webhook, sources } = await dump()
    const wrapped = [signing.private_jwk, ledger.private_jwk, linkKey.secret.toString(), webhook.secrets]
    wrapped.push(
      webhook.headers.authorization,
      ...sources.flatMap(({ secret_path, secret }) => [secret_path, secret ?? 'wrapped:']),
    )
    for (const text of wrapped) expect(text).toMatch(/^wrapped:/)
    await expectWorking()
  })

  it('wrap nothing twice: a second run changes no row', async () => {
    const before = await dump()
    expect(await rewrapAll(service.db)).toEqual({ wrapped: {}, lost: {} })
    expect(await dump()).toEqual(before)
  })
})

describe('a stolen backup forges nothing', () => {
  it('no token: neither as the key of its algorithm nor as a shared secret', async () => {
    const { kid, private_jwk } = (await dump()).signing
    expect(() => createPrivateKey({ format: 'jwk', key: private_jwk as never })).toThrow()
    const bytes = Buffer.from((private_jwk as string).split(':')[2]!, 'base64url')
    const secrets = [Buffer.from(private_jwk as string), bytes, bytes.subarray(12, -16), bytes.subarray(0, 32)]
    const claims = { iss: 'kith', aud: 'kith', sub: 'thief', org: organization.key, scope: 'people:read', jti: 'x' }
    for (const secret of secrets) {
      const jwt = new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid }).setIssuedAt().setExpirationTime('1h')
      const send = service.sender(await jwt.sign(secret))
      expect((await send('GET', '/v1/people/ada')).status).toBe(401)
    }
  })

  it('no consent link', async () => {
    const { id, secret } = (await dump()).link
    const content = parseLink(link.split('/').at(-1)!)!
    const bytes = Buffer.from(secret.toString().split(':')[2]!, 'base64url')
    for (const stolen of [secret, bytes, bytes.subarray(0, 32), bytes.subarray(12, 44), bytes.subarray(-32)]) {
      const forged = signLink(content, { id, secret: stolen })
      expect((await requestPage(`${service.address}/p/${forged}`)).status).toBe(404)
    }
  })

  it('no delivery of a webhook', async () => {
    const { secrets } = (await dump()).webhook
    const bytes = Buffer.from((secrets as string).split(':')[2]!, 'base64url')
    const now = new Date()
    for (const stolen of [Buffer.from(secrets as string), bytes, bytes.subarray(0, 32), bytes.subarray(12, 44)]) {
      const signature = new Webhook(stolen.toString('base64')).sign('m', now, '{}')
      const headers = {
        'webhook-id': 'm',
        'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
        'webhook-signature': signature,
      }
      expect(() => new Webhook(webhookSecret).verify('{}', headers)).toThrow('No matching signature')
    }
  })

  it('no checkpoint and no receipt: the key of the ledger cannot be made of it', async () => {
    const { private_jwk } = (await dump()).ledger
    const [{ public_jwk }] = (await service.sql('select public_jwk from ledger_keys')) as [
      { public_jwk: { x: string } },
    ]
    expect(() => createPrivateKey({ format: 'jwk', key: private_jwk as never })).toThrow()
    const bytes = Buffer.from((private_jwk as string).split(':')[2]!, 'base64url')
    for (let start = 0; start + 32 <= bytes.length; start++) {
      const prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
      const key = createPrivateKey({
        key: Buffer.concat([prefix, bytes.subarray(start, start + 32)]),
        format: 'der',
        type: 'pkcs8',
      })
      expect((key.export({ format: 'jwk' }) as { x: string }).x).not.toBe(public_jwk.x)
    }
  })

  it('no event of a mail provider, with a secret or by its address alone', async () => {
    const [mailgun, postmark] = (await dump()).sources
    expect((await sendMailgun(mailgun!.secret!)).status).toBe(401)
    const prefix = postmarkPath.slice(0, postmarkPath.lastIndexOf('-') + 1)
    const hex = Buffer.from(postmark!.secret_path.split(':')[2]!, 'base64url').toString('hex')
    for (const path of [encodeURIComponent(postmark!.secret_path), hex.slice(0, 32), hex.slice(24, 56)])
      expect((await sendPostmark(`${prefix}${path}`)).status).toBe(401)
  })
})

it('bytes that are moved to another row do not open, nor do changed ones', async () => {
  const other = await service.organization()
  await other.send('POST', '/v1/people', { external_id: 'bob' })
  const theirs = (await other.send('POST', '/v1/people/bob/consent-links', {})).body.data.preferences_url
  const move = `update link_keys k set secret = s.secret from link_keys s where k.organization_id = $1 and s.organization_id = $2`
  const [{ secret }] = (await service.sql('select secret from link_keys where organization_id = $1', [other.id])) as [
    object & { secret: Buffer },
  ]
  await service.sql(move, [other.id, organization.id])
  expect((await requestPage(theirs)).status).toBe(500)
  await service.sql('update link_keys set secret = $2 where organization_id = $1', [other.id, secret])
  expect((await requestPage(theirs)).status).toBe(200)

  const key = masterKeyOf(randomBytes(32))!
  const keys = createMasterKeys(() => [key])
  const wrapped = keys.wrap('secret', rowOf('link_keys', 1, 1))
  for (const row of [rowOf('link_keys', 1, 2), rowOf('link_keys', 11), rowOf('webhooks', 1, 1)])
    expect(() => keys.unwrap(wrapped, row)).toThrow('belongs to another row')
  const [, id, text] = wrapped.split(':')
  for (let at = 0; at < text!.length; at++) {
    const changed = `${text!.slice(0, at)}${text![at] === 'A' ? 'B' : 'A'}${text!.slice(at + 1)}`
    // The last character of base64url may have unused bits.
    if (Buffer.from(changed, 'base64url').equals(Buffer.from(text!, 'base64url'))) continue
    expect(() => keys.unwrap(`wrapped:${id}:${changed}`, rowOf('link_keys', 1, 1))).toThrow('it was changed')
  }
})

describe('a rotation of the master key', () => {
  const secondKey = newKey()
  const open = () => {
    const masterKeys = openMasterKeys(service.config)
    return openDatabase(service.databaseUrl, { connections: 1, statementTimeoutMs: 10_000, masterKeys })
  }
  const idOf = (key: string) => masterKeyOf(Buffer.from(key, 'base64'))!.id

  it('goes on while several processes run, and its interrupted run is finished by the next', async () => {
    await writeKeys(secondKey, firstKey)
    const other = open()
    try {
      // The connection breaks in the middle of the run.
      let left = 2
      const breaking = {
        ...other,
        query: async (...given: Parameters<Database['query']>) => {
          if (given[0].name.startsWith('store_') && left-- <= 0) throw new Error('broken')
          return other.query(...given)
        },
      } as Database
      await expect(rewrapAll(breaking)).rejects.toThrow('broken')
      await expectWorking(other)
      await expectWorking()
      const { wrapped, lost } = await rewrapAll(other)
      expect([wrapped, lost]).toEqual([expect.objectContaining({ webhooks: 1, deliverability_sources: 2 }), {}])
      expect(await rewrapAll(service.db)).toEqual({ wrapped: {}, lost: {} })
      // This process also wraps new secrets by the new key.
      const rotated = (await ok('POST', '/v1/webhooks/1/rotate')).secret
      webhookSecret = rotated
      const { webhook, signing, link: linkKey } = await dump()
      for (const text of [
        webhook.secrets,
        webhook.headers.authorization,
        signing.private_jwk,
        linkKey.secret.toString(),
      ])
        expect(text).toContain(`wrapped:${idOf(secondKey)}:`)
    } finally {
      await other.close()
    }
  })

  it('ends with the removal of the older key, which nothing needs any more', async () => {
    await writeKeys(secondKey)
    const other = open()
    try {
      await ensureMasterKey(other, loadConfig({ KITH_MASTER_KEY_FILE: file, DATABASE_URL: service.databaseUrl }))
      await expectWorking(other)
      expect(await rewrapAll(other)).toEqual({ wrapped: {}, lost: {} })
    } finally {
      await other.close()
    }
  })
})

it('a process that has read the master key goes on when its file is away, and does not wrap by another one', async () => {
  const dataDir = join(folder, 'data')
  await mkdir(dataDir)
  const config = loadConfig({ KITH_DATA_DIR: dataDir })
  const keys = openMasterKeys(config)
  expect(keys.wrappingId()).toBeUndefined()
  await makeKeyFile(join(dataDir, 'master.key'))
  // A second process that creates the file at the same time keeps the first file.
  const id = keys.wrappingId()
  await makeKeyFile(join(dataDir, 'master.key'))
  expect([keys.wrappingId(), openMasterKeys(config).wrappingId()]).toEqual([id, id])
  await rm(join(dataDir, 'master.key'))
  expect(keys.unwrap(keys.wrap('secret', 'row'), 'row')).toBe('secret')
  expect(keys.wrappingId()).toBe(id)
})

it('without a master key, a secret that looks like a wrapped one is refused', () => {
  const refused = expect.objectContaining({
    refusal: expect.objectContaining({ code: 'invalid_parameter', status: 400 }),
  })
  expect(() => noMasterKeys.wrap('wrapped:x', 'row')).toThrow(refused)
  expect(noMasterKeys.unwrap(noMasterKeys.wrap('secret', 'row'), 'row')).toBe('secret')
})
