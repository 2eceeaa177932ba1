import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { type Adapter, list, member, secondsToMs, throwUnsigned, typeIn } from './provider.ts'

/** The public key in SendGrid's format: base64 of its DER. Undefined for a text that is no key. */
function readPublicKey(text: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    return undefined
  }
}

/** The event webhook of SendGrid: ECDSA with P-256 and SHA-256 over the timestamp and the bytes of the body. */
export const sendgrid: Adapter = {
  secretName: 'public_key',
  faultOf: secret =>
    readPublicKey(secret) ? undefined : 'must be a public key of the curve P-256 in base64, as SendGrid shows it',
  verify({ headers, body, secret }) {
    const [signature, timestamp] = ['signature', 'timestamp'].map(
      name => headers[`x-twilio-email-event-webhook-${name}`],
    )
    const key = readPublicKey(secret ?? '')
    if (typeof signature !== 'string' || typeof timestamp !== 'string' || !key) return throwUnsigned()
    const atMs = secondsToMs(timestamp)
    const signed = Buffer.concat([Buffer.from(timestamp), body])
    if (!verify('sha256', signed, key, Buffer.from(signature, 'base64'))) return throwUnsigned()
    // An ECDSA signature can be written in several ways, so the signed bytes are the token.
    return { token: signed.toString('latin1'), atMs }
  },
  read: content =>
    list(content).map(event => {
      const type = typeIn(types, member(event, 'event'))
      // A bounce of the type `blocked` is temporary: the mailbox may exist.
      const isBlocked = type === 'hard_bounce' && member(event, 'type') === 'blocked'
      return {
        type: isBlocked ? 'soft_bounce' : type,
        address: member(event, 'email'),
        at: member(event, 'timestamp'),
        reference: member(event, 'sg_event_id') ?? member(event, 'sg_message_id'),
      }
    }),
}

const types = {
  bounce: 'hard_bounce',
  delivered: 'delivered',
  spamreport: 'complaint',
  unsubscribe: 'unsubscribe',
  group_unsubscribe: 'unsubscribe',
} as const
