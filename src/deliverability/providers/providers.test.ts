import { createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { selfSigned } from '../../../test/support/certificate.ts'
import { useService } from '../../../test/support/service.ts'
import { useShop } from '../../../test/support/shop.ts'

const service = useService()
const organization = useShop(service)
const { send, ok } = organization

const makeSource = (provider: string, secrets: object = {}) =>
  ok('POST', '/v1/deliverability/sources', { key: provider, provider, ...secrets })

/** Sends a request as a provider does. Returns the status and the counts. */
async function deliver(path: string, body: string | Buffer, headers: Record<string, string> = {}) {
  const options = { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: body as string }
  const response = await fetch(service.address + path, options)
  const text = await response.text()
  service.checkResponse({ method: 'POST', path, status: response.status, body: JSON.parse(text) })
  return { status: response.status, ...JSON.parse(text).data }
}

const suppressed = async (): Promise<Record<string, string>> =>
  Object.fromEntries(
    (await ok('GET', '/v1/deliverability')).items.map(
      ({ address, suppression }: { address: string; suppression: { reason: string } }) => [address, suppression.reason],
    ),
  )
const sourceNow = async () => (await ok('GET', '/v1/deliverability/sources')).items[0]
const refused = { status: 401 }
const recently = () => new Date(Date.now() - 60_000).toISOString()
const nowS = () => Math.floor(Date.now() / 1_000)

describe('SendGrid', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const public_key = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  let path: string
  beforeEach(async () => {
    path = (await makeSource('sendgrid', { public_key })).path
  })

  const deliverSigned = (body: string, { timestamp = String(nowS()), key = privateKey as KeyObject } = {}) =>
    deliver(path, body, {
      'X-Twilio-Email-Event-Webhook-Signature': sign('sha256', Buffer.from(timestamp + body), key).toString('base64'),
      'X-Twilio-Email-Event-Webhook-Timestamp': timestamp,
    })

  // The example of SendGrid's reference of the event webhook.
  const events = () =>
    JSON.stringify(
      [
        { email: 'processed@example.com', event: 'processed' },
        { email: 'deferred@example.com', event: 'deferred', response: '400 try again later', attempt: '5' },
        { email: 'delivered@example.com', event: 'delivered', response: '250 OK' },
        { email: 'open@example.com', event: 'open', useragent: 'Mozilla/4.0' },
        {
          email: 'bounce@example.com',
          event: 'bounce',
          type: 'bounce',
          reason: '500 unknown recipient',
          status: '5.0.0',
        },
        { email: 'blocked@example.com', event: 'bounce', type: 'blocked', reason: '421 too many messages' },
        { email: 'dropped@example.com', event: 'dropped', reason: 'Bounced Address', status: '5.0.0' },
        { email: 'spam@example.com', event: 'spamreport' },
        { email: 'unsubscribe@example.com', event: 'unsubscribe' },
        { email: 'group@example.com', event: 'group_unsubscribe', asm_group_id: 10 },
      ].map((event, n) => ({ ...event, timestamp: nowS() - 60, sg_event_id: `event-${n}`, sg_message_id: 'm' })),
    )

  it('tells of bounces, complaints, deliveries and unsubscriptions, and of others that are ignored', async () => {
    for (const name of ['unsubscribe', 'group'])
      await ok('POST', '/v1/people', { external_id: name, email: `${name}@example.com` })
    expect(await deliverSigned(events())).toEqual({ status: 200, stored: 6, ignored: 4 })
    expect(await suppressed()).toEqual({ 'bounce@example.com': 'hard_bounce', 'spam@example.com': 'complaint' })
    for (const name of ['unsubscribe', 'group'])
      expect((await ok('GET', `/v1/people/${name}`)).email_consent).toBe(false)
    expect(await sourceNow()).toMatchObject({ last_event_at: expect.stringMatching(/Z$/), ignored_events: 4 })
    expect((await ok('GET', '/v1/people/group/history')).items[0].actor).toBe('source:sendgrid')
  })

  it('is refused without a signature, with a wrong or an old one, and the second time', async () => {
    const body = events()
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    expect(await deliver(path, body)).toMatchObject(refused)
    expect(await deliverSigned(body, { key: other })).toMatchObject(refused)
    expect(await deliverSigned(body, { timestamp: String(nowS() - 90_000) })).toMatchObject(refused)
    expect(await deliverSigned(body, { timestamp: String(nowS() + 3_600) })).toMatchObject(refused)
    expect(await deliverSigned(body, { timestamp: 'x' })).toMatchObject(refused)
    expect([await suppressed(), (await sourceNow()).last_event_at]).toEqual([{}, null])
    const timestamp = String(nowS())
    expect((await deliverSigned(body, { timestamp })).status).toBe(200)
    const head = await organization.head()
    expect(await deliverSigned(body, { timestamp })).toMatchObject(refused)
    expect(await organization.head()).toBe(head)
  })

  it('may send many events at once, but not more than a MiB', async () => {
    const many = JSON.stringify(
      Array.from({ length: 10_000 }, (_, n) => ({
        email: `a${n}@example.com`,
        event: 'bounce',
        timestamp: nowS() - 9,
      })),
    )
    expect(Buffer.byteLength(many)).toBeLessThan(1_048_576)
    expect(await deliverSigned(many)).toEqual({ status: 200, stored: 10_000, ignored: 0 })
    expect((await deliverSigned(`[${' '.repeat(1_048_576)}]`)).status).toBe(413)
  })

  it('may send what is no event, which is ignored', async () => {
    const hostile = [
      null,
      1,
      'x',
      [],
      {},
      { event: 'bounce' },
      { event: 'bounce', email: 7 },
      { event: '__proto__', email: 'a@example.com' },
      { event: 'bounce', email: 'x'.repeat(2_000) },
    ]
    expect(await deliverSigned(JSON.stringify(hostile))).toEqual({ status: 200, stored: 0, ignored: 9 })
    expect(await deliverSigned('{}')).toEqual({ status: 200, stored: 0, ignored: 0 })
    expect((await deliverSigned('not JSON')).status).toBe(400)
    expect(await deliverSigned(JSON.stringify([{ event: 'bounce', email: 'no address', timestamp: 'x' }]))).toEqual({
      status: 200,
      stored: 0,
      ignored: 0,
    })
  })

  it('may name its events with what no text of the database has, and holds up no other event', async () => {
    const ids = ['a\0b', '\ud800', `${'x'.repeat(254)}\u{1f600}`]
    const odd = ids.map((sg_event_id, n) => ({ email: `a${n}@example.com`, event: 'bounce', sg_event_id }))
    const addresses = ['\0@example.com', '\ud800@example.com'].map(email => ({ email, event: 'bounce' }))
    expect(await deliverSigned(JSON.stringify([...odd, ...addresses]))).toEqual({ status: 200, stored: 3, ignored: 0 })
    const { items } = await ok('GET', '/v1/deliverability/events')
    expect(items.map(({ reference }: { reference: string }) => reference)).toEqual([
      'a\u{fffd}b',
      '\u{fffd}',
      `${'x'.repeat(254)}\u{fffd}`,
    ])
  })

  it('writes nothing to another organization', async () => {
    const other = await service.organization()
    await other.send('POST', '/v1/people', { external_id: 'ada', email: 'bounce@example.com' })
    await deliverSigned(events())
    expect((await other.send('GET', '/v1/people/ada/deliverability')).body.data.items[0].state).toBe('deliverable')
    const foreign = path.replace(/\/[\da-z]+-/, `/${other.id.toString(36)}-`)
    expect(await deliver(foreign, events())).toMatchObject(refused)
  })
})

describe('Mailgun', () => {
  const secret = 'key-3ax6xnjp29jd6fds4gc373sgvjxteol0'
  let path: string
  beforeEach(async () => {
    path = (await makeSource('mailgun', { secret })).path
  })

  const signed = (
    data: object,
    { timestamp = String(nowS()), token = randomBytes(25).toString('hex'), key = secret } = {},
  ) => {
    const signature = createHmac('sha256', key)
      .update(timestamp + token)
      .digest('hex')
    return JSON.stringify({ signature: { timestamp, token, signature }, 'event-data': data })
  }

  // After the examples of Mailgun's documentation of webhooks.
  const failed = (severity: string, recipient: string, seconds = 60) => ({
    event: 'failed',
    severity,
    id: `G9Bn5sl1TC6nu79C8C0bwg${recipient}`,
    timestamp: Date.now() / 1_000 - seconds,
    'log-level': 'error',
    'delivery-status': { code: 605, message: '', description: 'Not delivering to previously bounced address' },
    recipient,
    message: { headers: { to: 'Alice <alice@example.com>', 'message-id': '20130503192659.13651.20287@example.com' } },
  })

  it('tells of failures, complaints, unsubscriptions and deliveries', async () => {
    await ok('POST', '/v1/people', { external_id: 'bob', email: 'bob@example.com' })
    expect(await deliver(path, signed(failed('permanent', 'alice@example.com')))).toEqual({
      status: 200,
      stored: 1,
      ignored: 0,
    })
    for (const seconds of [30, 20, 10]) await deliver(path, signed(failed('temporary', 'full@example.com', seconds)))
    const event = { timestamp: Date.now() / 1_000 - 60, recipient: 'bob@example.com', id: 'x' }
    await deliver(path, signed({ ...event, event: 'complained', recipient: 'carl@example.com' }))
    await deliver(path, signed({ ...event, event: 'unsubscribed' }))
    expect(await deliver(path, signed({ ...event, event: 'opened' }))).toEqual({ status: 200, stored: 0, ignored: 1 })
    expect(await suppressed()).toEqual({
      'alice@example.com': 'hard_bounce',
      'full@example.com': 'soft_bounce',
      'carl@example.com': 'complaint',
    })
    expect((await ok('GET', '/v1/people/bob')).email_consent).toBe(false)
  })

  it('is refused without a signature, with a wrong or an old one, and with a token that was used', async () => {
    const event = failed('permanent', 'alice@example.com')
    for (const body of [
      '{}',
      'not JSON',
      '[]',
      JSON.stringify({ 'event-data': event }),
      signed(event, { key: 'key-other' }),
      signed(event, { timestamp: String(nowS() - 90_000) }),
      signed(event).replace(/"signature":"./, '"signature":"x'),
    ])
      expect(await deliver(path, body)).toMatchObject(refused)
    expect(await suppressed()).toEqual({})
    const token = randomBytes(25).toString('hex')
    expect((await deliver(path, signed(event, { token }))).status).toBe(200)
    expect(await deliver(path, signed(failed('permanent', 'eve@example.com'), { token }))).toMatchObject(refused)
    expect(await suppressed()).toEqual({ 'alice@example.com': 'hard_bounce' })
  })

  it('takes a token once of requests that arrive together', async () => {
    const body = signed(failed('permanent', 'alice@example.com'))
    const replies = await Promise.all(Array.from({ length: 5 }, () => deliver(path, body)))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401])
  })
})

describe('Postmark', () => {
  // After the examples of Postmark's documentation of webhooks.
  const bounce = (Type: string, Email: string) => ({
    RecordType: 'Bounce',
    ID: 4323372036854775,
    Type,
    TypeCode: 1,
    Name: 'Hard bounce',
    MessageID: '883953f4-6105-42a2-a16a-77a8eac79483',
    Description: 'The server was unable to deliver your message.',
    Email,
    BouncedAt: recently(),
    CanActivate: true,
  })
  const change = (more: object) => ({
    RecordType: 'SubscriptionChange',
    MessageID: '883953f4-6105-42a2-a16a-77a8eac79483',
    ChangedAt: recently(),
    Recipient: 'bob@example.com',
    SuppressSending: true,
    SuppressionReason: 'ManualSuppression',
    ...more,
  })

  it('tells of bounces, complaints, deliveries and unsubscriptions at its secret path', async () => {
    const { path } = await makeSource('postmark')
    await ok('POST', '/v1/people', { external_id: 'bob', email: 'bob@example.com' })
    const counts = []
    for (const event of [
      bounce('HardBounce', 'john@example.com'),
      { ...bounce('SpamComplaint', 'carl@example.com'), RecordType: 'SpamComplaint' },
      { RecordType: 'Delivery', Recipient: 'eve@example.com', DeliveredAt: recently(), MessageID: 'x' },
      bounce('AutoResponder', 'away@example.com'),
      { RecordType: 'Open', Recipient: 'eve@example.com' },
      change({ Origin: 'Admin' }),
      change({ Origin: 'Recipient', SuppressSending: false }),
      change({ Origin: 'Recipient' }),
    ])
      counts.push(await deliver(path, JSON.stringify(event)))
    expect(counts.map(({ status, stored, ignored }) => [status, stored, ignored])).toEqual([
      ...Array(3).fill([200, 1, 0]),
      ...Array(4).fill([200, 0, 1]),
      [200, 1, 0],
    ])
    expect(await suppressed()).toEqual({ 'john@example.com': 'hard_bounce', 'carl@example.com': 'complaint' })
    expect((await ok('GET', '/v1/people/bob')).email_consent).toBe(false)
  })

  it('is refused at another path, without the password that the source has, and with another one', async () => {
    const { path } = await makeSource('postmark', { secret: 'kith:open sesame' })
    const body = JSON.stringify(bounce('HardBounce', 'john@example.com'))
    const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString('base64')}` })
    expect(await deliver(path, body)).toMatchObject(refused)
    expect(await deliver(path, body, basic('kith:open'))).toMatchObject(refused)
    for (const wrong of [
      path.slice(0, -1),
      `${path.slice(0, -1)}${path.endsWith('0') ? '1' : '0'}`,
      `${path}0`,
      '/v1/deliverability/in/x',
      '/v1/deliverability/in/zzzzzz-0123456789abcdef0123456789abcdef',
    ])
      expect(await deliver(wrong, body, basic('kith:open sesame'))).toMatchObject(refused)
    expect(await suppressed()).toEqual({})
    expect((await deliver(path, body, basic('kith:open sesame'))).status).toBe(200)
    await ok('DELETE', '/v1/deliverability/sources/postmark')
    expect(await deliver(path, body, basic('kith:open sesame'))).toMatchObject(refused)
  })
})

describe('SES by SNS', () => {
  const topic_arn = 'arn:aws:sns:us-west-2:123456789012:MyTopic'
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = selfSigned(publicKey, privateKey, 1, 'sns.amazonaws.com')
  let path: string
  let asked: string[]
  /** The texts that SNS serves, by URL. Every test has other URLs, because kith caches the certificates. */
  let served: Map<string, string>
  let certificateUrl: string
  beforeEach(async () => {
    path = (await makeSource('ses', { topic_arn })).path
    asked = []
    certificateUrl = `https://sns.us-west-2.amazonaws.com/SimpleNotificationService-${randomBytes(8).toString('hex')}.pem`
    served = new Map([[certificateUrl, pem]])
    const real = globalThis.fetch
    vi.stubGlobal('fetch', async (url: string | URL, options: RequestInit) => {
      if (String(url).startsWith(service.address)) return real(url, options)
      asked.push(String(url))
      const text = served.get(String(url))
      return new Response(text ?? 'none', { status: text === undefined ? 404 : 200 })
    })
  })
  afterEach(() => vi.unstubAllGlobals())

  const names = {
    Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
    SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  }
  type Options = { key?: KeyObject; more?: Record<string, string>; after?: Record<string, string> }

  /** A message as SNS sends it. The signature covers `more`, but not `after`. */
  function message(
    Type: keyof typeof names,
    Message: string,
    { key = privateKey, more = {}, after = {} }: Options = {},
  ) {
    const fields: Record<string, string> = {
      Type,
      MessageId: randomBytes(8).toString('hex'),
      TopicArn: topic_arn,
      Message,
      Timestamp: new Date().toISOString(),
      SignatureVersion: '2',
      SigningCertURL: certificateUrl,
      ...more,
    }
    const signed = names[Type]
      .filter(name => name in fields)
      .map(name => `${name}\n${fields[name]}\n`)
      .join('')
    const algorithm = fields.SignatureVersion === '1' ? 'sha1' : 'sha256'
    return JSON.stringify({
      ...fields,
      Signature: sign(algorithm, Buffer.from(signed), key).toString('base64'),
      ...after,
    })
  }
  const notify = (content: object, options?: Options) =>
    deliver(path, message('Notification', JSON.stringify(content), options), {
      'Content-Type': 'text/plain; charset=UTF-8',
    })

  // After the examples of the documentation of Amazon SES.
  const mail = {
    timestamp: recently(),
    messageId: '00000138111222aa-33322211-cccc-cccc-cccc-ddddaaaa0680-000000',
    source: 'john@example.com',
  }
  const bounce = (bounceType: string, address: string, timestamp = recently()) => ({
    notificationType: 'Bounce',
    bounce: {
      bounceType,
      bounceSubType: 'General',
      bouncedRecipients: [{ emailAddress: address, status: '5.0.0', action: 'failed' }],
      timestamp,
      feedbackId: 'f',
    },
    mail,
  })

  it('tells of bounces, complaints and deliveries, with either version of the signature', async () => {
    expect(await notify(bounce('Permanent', 'Jane <jane@example.com>'))).toEqual({ status: 200, stored: 1, ignored: 0 })
    for (const n of [1, 2, 3])
      await notify(bounce('Transient', 'full@example.com', new Date(Date.now() - n * 1_000).toISOString()), {
        more: { SignatureVersion: '1', Subject: 'Amazon SES Email Event Notification' },
      })
    const complaint = {
      complainedRecipients: [{ emailAddress: 'richard@example.com' }],
      timestamp: recently(),
      feedbackId: 'f',
    }
    await notify({ eventType: 'Complaint', complaint, mail })
    expect(
      await notify({
        eventType: 'Delivery',
        delivery: { timestamp: recently(), recipients: ['eve@example.com'] },
        mail,
      }),
    ).toEqual({ status: 200, stored: 1, ignored: 0 })
    expect(await notify({ eventType: 'Open', open: {}, mail })).toEqual({ status: 200, stored: 0, ignored: 1 })
    expect(await deliver(path, message('Notification', 'Successfully validated SNS topic'))).toEqual({
      status: 200,
      stored: 0,
      ignored: 1,
    })
    expect(await suppressed()).toEqual({
      'jane@example.com': 'hard_bounce',
      'full@example.com': 'soft_bounce',
      'richard@example.com': 'complaint',
    })
    expect(asked).toEqual([certificateUrl])
  })

  it('confirms the subscription of the topic of the source, and of no other one', async () => {
    const SubscribeURL = `https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${topic_arn}&Token=2336412f37`
    served.set(SubscribeURL, '<ConfirmSubscriptionResponse/>')
    const confirmation = (more: Record<string, string>) =>
      deliver(
        path,
        message('SubscriptionConfirmation', 'You have chosen to subscribe …', {
          more: { Token: '2336412f37', SubscribeURL, ...more },
        }),
      )
    expect(await confirmation({ TopicArn: `${topic_arn}Other` })).toMatchObject(refused)
    for (const SubscribeURL of [
      'http://sns.us-west-2.amazonaws.com/',
      'https://169.254.169.254/latest/meta-data',
      'https://sns.us-west-2.amazonaws.com.evil.example/',
    ])
      expect(await confirmation({ SubscribeURL })).toMatchObject(refused)
    expect(asked).toEqual([certificateUrl])
    expect((await sourceNow()).confirmed_at).toBe(null)
    expect((await confirmation({})).status).toBe(200)
    expect(asked).toEqual([certificateUrl, SubscribeURL])
    expect((await sourceNow()).confirmed_at).toMatch(/Z$/)
  })

  it('asks no host but that of SNS for a certificate', async () => {
    for (const url of [
      'http://sns.us-west-2.amazonaws.com/a.pem',
      'https://sns.us-west-2.amazonaws.com.evil.example/a.pem',
      'https://evil.example/sns.us-west-2.amazonaws.com/a.pem',
      'https://sns.us-west-2.amazonaws.com:8443/a.pem',
      'https://user@sns.us-west-2.amazonaws.com/a.pem',
      'https://s3.us-west-2.amazonaws.com/bucket/a.pem',
      'https://sns.evil.us-west-2.amazonaws.com/a.pem',
      'https://sns.us-west-2.amazonaws.com/a.txt',
      'https://sns.us-west-2.amazonaws.com/?a.pem',
      'https://127.0.0.1/a.pem',
      'file:///etc/passwd.pem',
      '',
    ]) {
      served.set(url, pem)
      expect([url, await notify(bounce('Permanent', 'jane@example.com'), { more: { SigningCertURL: url } })]).toEqual([
        url,
        expect.objectContaining(refused),
      ])
    }
    expect([asked, await suppressed()]).toEqual([[], {}])
  })

  it('is refused without a signature, with a wrong or an old one, and the second time', async () => {
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const event = bounce('Permanent', 'jane@example.com')
    const text = JSON.stringify(event)
    for (const body of [
      'not JSON',
      '{}',
      text,
      message('Notification', text, { key: other.privateKey }),
      message('Notification', text, { after: { Message: JSON.stringify(bounce('Permanent', 'eve@example.com')) } }),
      message('Notification', text, { after: { SignatureVersion: '3' } }),
      message('Notification', text, { after: { Type: 'SubscriptionConfirmation' } }),
      message('Notification', text, { more: { Timestamp: new Date(Date.now() - 90_000_000).toISOString() } }),
      message('Notification', text, { more: { Timestamp: 'x' } }),
      message('Notification', text, { more: { TopicArn: 'arn:aws:sns:us-west-2:999999999999:Other' } }),
    ])
      expect(await deliver(path, body)).toMatchObject(refused)
    expect(await suppressed()).toEqual({})
    const body = message('Notification', text)
    expect((await deliver(path, body)).status).toBe(200)
    expect(await deliver(path, body)).toMatchObject(refused)
  })

  it('is refused with a certificate of another name, of another time, or that its chain does not sign', async () => {
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const certificates = [
      selfSigned(publicKey, privateKey, 1, 'sns.amazonaws.com.evil.example'),
      selfSigned(publicKey, privateKey, -1, 'sns.amazonaws.com'),
      pem + selfSigned(other.publicKey, other.privateKey, 1, 'sns.amazonaws.com'),
      'no certificate',
      '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----',
    ]
    for (const [n, certificate] of certificates.entries()) {
      const SigningCertURL = certificateUrl.replace('.pem', `${n}.pem`)
      served.set(SigningCertURL, certificate)
      expect([n, await notify(bounce('Permanent', 'jane@example.com'), { more: { SigningCertURL } })]).toEqual([
        n,
        expect.objectContaining(refused),
      ])
    }
    const missing = await notify(bounce('Permanent', 'jane@example.com'), {
      more: { SigningCertURL: `${certificateUrl}0.pem` },
    })
    expect(missing.status).toBe(503)
    expect(await suppressed()).toEqual({})
  })
})

describe('a source', () => {
  it.each([
    [{ key: 'a', provider: 'sendgrid' }, '/public_key'],
    [{ key: 'a', provider: 'sendgrid', public_key: 'AAAA' }, '/public_key'],
    [{ key: 'a', provider: 'mailgun' }, '/secret'],
    [{ key: 'a', provider: 'ses' }, '/topic_arn'],
    [{ key: 'a', provider: 'ses', topic_arn: 'MyTopic' }, '/topic_arn'],
    [{ key: 'a', provider: 'postmark', secret: 'no colon' }, '/secret'],
    [{ key: 'a', provider: 'postmark', topic_arn: 'arn:aws:sns:us-west-2:123456789012:MyTopic' }, '/topic_arn'],
    [{ key: 'a', provider: 'smtp' }, '/provider'],
  ])('is refused for %j at %s', async (body, at) => {
    const reply = await send('POST', '/v1/deliverability/sources', body)
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([400, [at]])
  })

  it('has a key of its own, shows no secret, and needs the scopes of webhooks', async () => {
    await makeSource('mailgun', { secret: 'key-123' })
    expect((await send('POST', '/v1/deliverability/sources', { key: 'mailgun', provider: 'postmark' })).status).toBe(
      409,
    )
    expect(JSON.stringify(await ok('GET', '/v1/deliverability/sources'))).not.toContain('key-123')
    const writer = service.sender(await service.tokenFor(organization.key, 'people:write people:read'))
    for (const method of ['GET', 'POST'])
      expect(
        (
          await writer(
            method,
            '/v1/deliverability/sources',
            method === 'POST' ? { key: 'x', provider: 'postmark' } : undefined,
          )
        ).status,
      ).toBe(403)
    expect((await send('DELETE', '/v1/deliverability/sources/other')).status).toBe(404)
  })
})
