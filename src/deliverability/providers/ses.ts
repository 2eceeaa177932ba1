import { verify, X509Certificate } from 'node:crypto'
import { rootCertificates } from 'node:tls'
import { refuse } from '../../values/errors.ts'
import { parseJson } from '../../values/parse-json.ts'
import { type Adapter, list, member, type Told, throwUnsigned } from './provider.ts'

// The events of Amazon SES, which SNS sends, signed with RSA by a certificate that the message names. kith requests
// only the certificate and the confirmation of a subscription, over https, from a host of SNS itself.

const snsHost = /^sns\.[a-z]{2}(?:-[a-z]+)+-\d\.amazonaws\.com(?:\.cn)?$/
const maxBytes = 64 * 1_024
const fetchMs = 5_000

/** The URL if its host is one of SNS. Throws a Fault of 401 otherwise. */
function snsUrl(text: unknown): URL {
  const url = typeof text === 'string' && text.length <= 2_048 ? URL.parse(text) : null
  const isAllowed =
    url?.protocol === 'https:' &&
    url.port === '' &&
    url.username === '' &&
    url.password === '' &&
    snsHost.test(url.hostname)
  return url && isAllowed ? url : throwUnsigned()
}

/** Requests a URL of {@link snsUrl}. Refuses a redirect, because it would lead to another host. */
async function request(url: URL): Promise<string> {
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(fetchMs) })
    if (!response.ok || !response.body) throw new Error(`SNS responded with ${response.status}`)
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of response.body) {
      bytes += chunk.length
      if (bytes > maxBytes) throw new Error('the response is too large')
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString()
  } catch (cause) {
    return refuse('operation_failed', 'SNS could not be asked. Retry.', { status: 503, cause })
  }
}

const maxCertificates = 50
const certificates = new Map<string, X509Certificate[]>()

/**
 * The certificates of a URL, beginning with the one that signs. Checked certificates are cached, so that kith requests
 * each URL only once.
 */
async function certificatesAt(url: URL, nowMs: number): Promise<X509Certificate[]> {
  const known = certificates.get(url.href)
  if (known) return known
  const text = await request(url)
  const chain = (text.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []).map(read)
  checkChain(chain, nowMs)
  if (certificates.size >= maxCertificates) certificates.clear()
  certificates.set(url.href, chain)
  return chain
}

function read(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch {
    return throwUnsigned()
  }
}

/** The subject of the certificates of SNS: `sns.amazonaws.com`, or the name of a region. */
const snsName = /^sns(?:\.[a-z\d-]+)?\.amazonaws\.com(?:\.cn)?$/

/**
 * Throws a Fault of 401 unless the first certificate names SNS and each is signed by the next. If a root of Node.js has
 * issued the last one, that root must have signed it. SNS serves the first certificate alone, so the TLS connection to
 * its host vouches for it.
 */
function checkChain(chain: readonly X509Certificate[], nowMs: number): void {
  const [first] = chain
  const names = [
    /(?:^|\n)CN=([^\n]+)/.exec(first?.subject ?? '')?.[1],
    ...(first?.subjectAltName?.match(/(?<=DNS:)[^,\s]+/g) ?? []),
  ]
  if (!first || !names.some(name => name !== undefined && snsName.test(name))) throwUnsigned()
  for (const [index, certificate] of chain.entries()) {
    checkPeriod(certificate, nowMs)
    const issuer = chain[index + 1] ?? rootOf(certificate)
    if (issuer && !(certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey))) throwUnsigned()
  }
}

function checkPeriod({ validFrom, validTo }: X509Certificate, nowMs: number): void {
  if (!(Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo))) throwUnsigned()
}

let roots: Map<string, X509Certificate> | undefined

function rootOf({ issuer }: X509Certificate): X509Certificate | undefined {
  roots ??= new Map(rootCertificates.map(pem => new X509Certificate(pem)).map(root => [root.subject, root]))
  return roots.get(issuer)
}

const signedMembers: Record<string, readonly string[]> = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
}
const algorithms: Record<string, string> = { 1: 'sha1', 2: 'sha256' }

/** Checks the signature of a message of SNS. Throws a Fault of 401. */
async function checkSignature(message: unknown, nowMs: number): Promise<void> {
  const names = signedMembers[String(member(message, 'Type'))]
  const algorithm = algorithms[String(member(message, 'SignatureVersion'))]
  const signature = member(message, 'Signature')
  if (!names || !algorithm || typeof signature !== 'string') return throwUnsigned()
  const url = snsUrl(member(message, 'SigningCertURL'))
  if (!url.pathname.endsWith('.pem') || url.search !== '') throwUnsigned()
  const lines = names.flatMap(name => {
    const value = member(message, name)
    if (value === undefined && name === 'Subject') return []
    return typeof value === 'string' ? [`${name}\n${value}\n`] : throwUnsigned()
  })
  const [certificate] = await certificatesAt(url, nowMs)
  checkPeriod(certificate!, nowMs)
  if (!verify(algorithm, Buffer.from(lines.join('')), certificate!.publicKey, Buffer.from(signature, 'base64')))
    throwUnsigned()
}

/** The events of Amazon SES, which SNS sends. */
export const ses: Adapter = {
  secretName: 'topic_arn',
  async verify({ secret, nowMs }, content) {
    const topic = member(content, 'TopicArn')
    if (typeof topic !== 'string' || topic !== secret) return throwUnsigned()
    await checkSignature(content, nowMs)
    const signed = {
      token: `${topic} ${member(content, 'MessageId')}`,
      atMs: Date.parse(String(member(content, 'Timestamp'))),
    }
    if (member(content, 'Type') !== 'SubscriptionConfirmation') return signed
    return { ...signed, confirm: () => request(snsUrl(member(content, 'SubscribeURL'))) }
  },
  read(content) {
    // The message of a notification is a text, and JSON if SES sent it.
    const message = parseJson(String(member(content, 'Message')))
    const kind = String(member(message, 'notificationType') ?? member(message, 'eventType')).toLowerCase()
    const { type, recipients } = meaningOf(kind, member(message, kind))
    const at = member(message, kind, 'timestamp')
    const reference = member(message, 'mail', 'messageId')
    return list(recipients).map(each => {
      return { type, address: typeof each === 'string' ? each : member(each, 'emailAddress'), at, reference }
    })
  },
}

/** The type of the events in a part of a message, and their recipients. */
function meaningOf(kind: string, part: unknown): { type: Told['type']; recipients: unknown } {
  if (kind === 'delivery') return { type: 'delivered', recipients: member(part, 'recipients') }
  if (kind === 'complaint') return { type: 'complaint', recipients: member(part, 'complainedRecipients') }
  if (kind !== 'bounce') return { type: undefined, recipients: [part] }
  const isHard = member(part, 'bounceType') === 'Permanent'
  return { type: isHard ? 'hard_bounce' : 'soft_bounce', recipients: member(part, 'bouncedRecipients') }
}
