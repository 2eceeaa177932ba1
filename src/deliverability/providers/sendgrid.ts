import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { GivenEvent } from '../schema.ts'
import {
  checkAge,
  collect,
  eventOf,
  type Incoming,
  list,
  member,
  type Received,
  readJson,
  throwUnsigned,
} from './provider.ts'

// The event webhook of SendGrid: ECDSA with P-256 and SHA-256 over the timestamp and the bytes of the body.

const signatureHeader = 'x-twilio-email-event-webhook-signature'
const timestampHeader = 'x-twilio-email-event-webhook-timestamp'

/** The public key as SendGrid shows it: base64 of its DER. Undefined for a text that is none. */
export function readPublicKey(text: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    return undefined
  }
}

const typesByEvent: Record<string, GivenEvent['type']> = {
  delivered: 'delivered',
  spamreport: 'complaint',
  unsubscribe: 'unsubscribe',
  group_unsubscribe: 'unsubscribe',
}

/** A bounce that is `blocked` was refused for now: the mailbox may exist. */
function typeOf(event: unknown): GivenEvent['type'] | undefined {
  const name = member(event, 'event')
  if (name === 'bounce') return member(event, 'type') === 'blocked' ? 'soft_bounce' : 'hard_bounce'
  return typeof name === 'string' && Object.hasOwn(typesByEvent, name) ? typesByEvent[name] : undefined
}

export function receiveSendgrid({ headers, body, secrets, nowMs }: Incoming): Received {
  const [signature, timestamp] = [headers[signatureHeader], headers[timestampHeader]]
  const key = readPublicKey(secrets.public_key ?? '')
  if (typeof signature !== 'string' || typeof timestamp !== 'string' || !key || !/^\d{1,12}$/.test(timestamp))
    return throwUnsigned()
  const signed = Buffer.concat([Buffer.from(timestamp), body])
  if (!verify('sha256', signed, key, Buffer.from(signature, 'base64'))) return throwUnsigned()
  checkAge(Number(timestamp) * 1_000, nowMs)
  const events = list(readJson(body.toString())).map(event => {
    const type = typeOf(event)
    if (!type) return undefined
    const reference = member(event, 'sg_event_id') ?? member(event, 'sg_message_id')
    const told = {
      provider: 'sendgrid',
      type,
      address: member(event, 'email'),
      at: member(event, 'timestamp'),
      reference,
    }
    return eventOf(told, nowMs)
  })
  // An ECDSA signature can be written in several ways, so what is signed is remembered.
  return { ...collect(events), token: signed.toString('latin1') }
}
