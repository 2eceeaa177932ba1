import { generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { stripTypeScriptTypes } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { SMTPServer } from 'smtp-server'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { readDocument } from '../client/test/examples.ts'
import { webhookFollower } from '../src/webhooks/deliver.ts'
import { selfSigned } from './support/certificate.ts'
import { follow } from './support/followers.ts'
import { formOf, requestPage } from './support/pages.ts'
import { createLoopbackSender } from './support/receiver.ts'
import { useOwnService } from './support/service.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8', KITH_RATE_PAGES: '100000' })

/** The code of docs/sending.md as a module. */
type Sending = {
  signUp(email: string, ip: string): Promise<void>
  send(subject: string, body: string): Promise<string[]>
  mayWrite(external_id: string): Promise<{ allowed: boolean; because: string[] }>
  listen(source: object): Promise<string>
  receiver: Server
}
type Mail = { to: string[]; headers: string; body: string }

let folder: string
let ending: (() => unknown)[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-sending-'))
})
afterEach(async () => {
  for (const end of ending) await end()
  ending = []
  await rm(folder, { recursive: true })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Starts a mail server that asks for these credentials. Returns its URL, the mails that it receives, and the mailboxes that are gone. */
async function startMailServer({ user, password }: { user: string; password: string }) {
  const mails: Mail[] = []
  const gone = new Set<string>()
  const server = new SMTPServer({
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onAuth: ({ username, password: given }, _session, callback) =>
      username === user && given === password ? callback(null, { user }) : callback(new Error('wrong credentials')),
    onRcptTo: ({ address }, _session, callback) =>
      gone.has(address)
        ? callback(Object.assign(new Error('5.1.1 No such mailbox'), { responseCode: 550 }))
        : callback(),
    onData: (stream, { envelope }, callback) => {
      text(stream).then(raw => {
        // Long header lines are folded, and long lines of a text end in a soft break.
        const [headers = '', ...body] = raw.split('\r\n\r\n')
        const to = envelope.rcptTo.map(({ address }) => address)
        mails.push({
          to,
          headers: headers.replaceAll(/\r\n[ \t]+/g, ' '),
          body: body.join('\r\n\r\n').replaceAll('=\r\n', ''),
        })
        callback()
      }, callback)
    },
  })
  const listener = server.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  ending.push(() => new Promise<void>(resolve => server.close(() => resolve())))
  const { port } = listener.address() as AddressInfo
  return { url: `smtp://${encodeURIComponent(user)}:${encodeURIComponent(password)}@127.0.0.1:${port}`, mails, gone }
}

async function runGuide(environment: Record<string, string>): Promise<Sending> {
  const resolved = {
    '@kith/client': new URL('../client/index.ts', import.meta.url).href,
    nodemailer: import.meta.resolve('nodemailer'),
  }
  let code = stripTypeScriptTypes(readDocument('docs/sending.md').code)
  for (const [name, url] of Object.entries(resolved)) code = code.replaceAll(`from '${name}'`, `from '${url}'`)
  const file = join(folder, 'sending.mjs')
  const env = `const process = { env: ${JSON.stringify(environment)} }`
  await writeFile(file, `${env}\n${code}\nexport { listen, mayWrite, receiver, send, signUp }\n`)
  const guide: Sending = await import(/* @vite-ignore */ pathToFileURL(file).href)
  ending.push(() => guide.receiver.close())
  return guide
}

type Bounce = (world: { guide: Sending; address: string; gone: Set<string> }) => Promise<unknown>

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const signatureOf = (signed: string) => sign('sha256', Buffer.from(signed), privateKey).toString('base64')

/** Posts to a source of the guide. Throws if kith refuses it. */
async function post(url: string, body: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body,
  })
  if (!response.ok) throw new Error(await response.text())
}

const refuseRecipient: Bounce = async ({ guide, address, gone }) => {
  gone.add(address)
  expect(await guide.send('News', 'Hello')).toEqual([])
}

/** An event as the webhook of SendGrid sends it. */
const tellBySendGrid: Bounce = async ({ guide, address }) => {
  const public_key = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const url = await guide.listen({ key: 'sendgrid', provider: 'sendgrid', public_key })
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const body = JSON.stringify([{ email: address, event: 'bounce', type: 'bounce', timestamp: Number(timestamp) }])
  await post(url, body, {
    'X-Twilio-Email-Event-Webhook-Signature': signatureOf(timestamp + body),
    'X-Twilio-Email-Event-Webhook-Timestamp': timestamp,
  })
}

/** A notification of SES as SNS sends it. SNS serves the certificate. */
const tellBySes: Bounce = async ({ guide, address }) => {
  const TopicArn = 'arn:aws:sns:eu-central-1:123456789012:news'
  const SigningCertURL = `https://sns.eu-central-1.amazonaws.com/${crypto.randomUUID()}.pem`
  const real = globalThis.fetch
  vi.stubGlobal('fetch', (url: string | URL, options?: RequestInit) =>
    String(url) === SigningCertURL
      ? Promise.resolve(new Response(selfSigned(publicKey, privateKey, 1, 'sns.amazonaws.com')))
      : real(url, options),
  )
  ending.push(() => vi.unstubAllGlobals())
  const url = await guide.listen({ key: 'ses', provider: 'ses', topic_arn: TopicArn })
  const Timestamp = new Date().toISOString()
  const bounce = { bounceType: 'Permanent', bouncedRecipients: [{ emailAddress: address }], timestamp: Timestamp }
  const Message = JSON.stringify({ notificationType: 'Bounce', bounce, mail: { messageId: 'm' } })
  const signed = { Message, MessageId: crypto.randomUUID(), Timestamp, TopicArn, Type: 'Notification' }
  const lines = Object.entries(signed).map(([name, value]) => `${name}\n${value}\n`)
  const message = { ...signed, SignatureVersion: '2', SigningCertURL, Signature: signatureOf(lines.join('')) }
  await post(url, JSON.stringify(message))
}

it.each<[string, { user: string; password: string }, Bounce]>([
  ['a mail server', { user: 'books', password: 'secret' }, refuseRecipient],
  ['SES', { user: 'AKIAIOSFODNN7EXAMPLE', password: 'BL3q/7+w=example' }, tellBySes],
  ['SendGrid', { user: 'apikey', password: 'SG.example.key' }, tellBySendGrid],
])(
  'docs/sending.md leads from the form to a confirmed grant, a mail, its unsubscription and a bounce, with %s',
  async (_, credentials, bounce) => {
    const { url, mails, gone } = await startMailServer(credentials)
    const { token, client } = await service.organization()
    const RECEIVER_URL = `http://127.0.0.1:${await freePort()}/kith`
    const environment = { KITH_URL: service.address, KITH_TOKEN: token, SMTP_URL: url, RECEIVER_URL }
    const guide = await runGuide(environment)
    const { signUp, send, mayWrite } = guide
    const sender = createLoopbackSender()
    ending.push(() => sender.close())
    const deliver = () => follow(service.db, [webhookFollower({ sender, linkBase: () => service.address })])
    const confirm = async (address: string) => {
      const confirmUrl = linkIn(mails.find(({ to }) => to.includes(address))?.body)
      const { shown } = formOf(await requestPage(confirmUrl))
      expect((await requestPage(confirmUrl, { form: { shown } })).status).toBe(200)
    }
    const linkIn = (part: string | undefined) => /http:\/\/127\.0\.0\.1:\d+\/[uc]\/[\w-]+/.exec(part ?? '')![0]

    // The form, and the mail that asks for the confirmation, also if the event comes twice.
    await signUp('ada@example.com', '192.0.2.7')
    await signUp('bob@example.com', '192.0.2.8')
    await deliver()
    const { items } = await client.webhooks.list().page()
    await client.webhooks.replay(items[0]!.id, { after: 0 })
    await deliver()
    expect(mails.map(({ to }) => to).sort()).toEqual([['ada@example.com'], ['bob@example.com']])
    expect(await mayWrite('ada@example.com')).toEqual({ allowed: false, because: ['answer'] })
    expect(await send('News', 'Hello')).toEqual([])

    // Ada confirms, and Bob does not.
    await confirm('ada@example.com')
    expect(await mayWrite('ada@example.com')).toEqual({ allowed: true, because: ['answer'] })
    expect(await send('News', 'Hello')).toEqual(['ada@example.com'])

    // The mail program unsubscribes by the headers.
    const { headers } = mails.at(-1)!
    expect(headers).toMatch(/^List-Unsubscribe-Post: List-Unsubscribe=One-Click$/m)
    const oneClick = linkIn(/^List-Unsubscribe: <.*>$/m.exec(headers)?.[0])
    expect((await requestPage(oneClick, { form: { 'List-Unsubscribe': 'One-Click' } })).status).toBe(200)
    expect(await mayWrite('ada@example.com')).toEqual({ allowed: false, because: ['answer'] })
    expect(await send('More news', 'Hello again')).toEqual([])
    const [last] = (await client.consents.history('ada@example.com').page()).items
    expect(last).toMatchObject({ state: false, method: 'unsubscribe_link', source: 'List-Unsubscribe=One-Click' })

    // Bob confirms, too, and his mailbox bounces.
    await confirm('bob@example.com')
    expect(await mayWrite('bob@example.com')).toEqual({ allowed: true, because: ['answer'] })
    await bounce({ guide, address: 'bob@example.com', gone })
    expect(await mayWrite('bob@example.com')).toEqual({ allowed: false, because: ['suppressed'] })
    expect(await send('News', 'Hello')).toEqual([])
  },
)
