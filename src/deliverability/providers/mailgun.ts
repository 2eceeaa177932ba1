import { createHmac } from 'node:crypto'
import type { GivenEvent } from '../schema.ts'
import { checkAge, collect, eventOf, type Incoming, isSame, member, type Received, throwUnsigned } from './provider.ts'

// The webhooks of Mailgun: HMAC with SHA-256 over a timestamp and a token, which is used once.

function typeOf(event: unknown): GivenEvent['type'] | undefined {
  switch (member(event, 'event')) {
    case 'failed':
      return member(event, 'severity') === 'permanent' ? 'hard_bounce' : 'soft_bounce'
    case 'complained':
      return 'complaint'
    case 'unsubscribed':
      return 'unsubscribe'
    case 'delivered':
      return 'delivered'
    default:
      return undefined
  }
}

export function receiveMailgun({ body, secrets, nowMs }: Incoming): Received {
  let content: unknown
  try {
    content = JSON.parse(body.toString())
  } catch {
    return throwUnsigned()
  }
  const [timestamp, token, signature] = ['timestamp', 'token', 'signature'].map(name =>
    member(content, 'signature', name),
  )
  if (typeof token !== 'string' || typeof signature !== 'string' || !secrets.secret) return throwUnsigned()
  const time = String(timestamp)
  const expected = createHmac('sha256', secrets.secret)
    .update(time + token)
    .digest('hex')
  if (!/^\d{1,12}$/.test(time) || !isSame(signature, expected)) return throwUnsigned()
  checkAge(Number(time) * 1_000, nowMs)
  const event = member(content, 'event-data')
  const type = typeOf(event)
  const told = {
    provider: 'mailgun',
    address: member(event, 'recipient'),
    at: member(event, 'timestamp'),
    reference: member(event, 'id'),
  }
  return { ...collect([type && eventOf({ ...told, type }, nowMs)]), token }
}
