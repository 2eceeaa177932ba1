import type { GivenEvent } from '../schema.ts'
import { collect, eventOf, type Incoming, isSame, member, type Received, readJson, throwUnsigned } from './provider.ts'

// The webhooks of Postmark, which are not signed: the address that they are sent to is secret, and may ask for a user and a password.

const bounceTypes: Record<string, GivenEvent['type']> = {
  HardBounce: 'hard_bounce',
  BadEmailAddress: 'hard_bounce',
  Transient: 'soft_bounce',
  SoftBounce: 'soft_bounce',
  DnsError: 'soft_bounce',
  Blocked: 'soft_bounce',
  SpamComplaint: 'complaint',
  SpamNotification: 'complaint',
  Unsubscribe: 'unsubscribe',
}

/** The type, and the names of the members with the address and the time. */
function meaningOf(content: unknown): [GivenEvent['type'] | undefined, address: string, at: string] {
  switch (member(content, 'RecordType')) {
    case 'Bounce':
    case 'SpamComplaint': {
      const name = String(member(content, 'RecordType') === 'Bounce' ? member(content, 'Type') : 'SpamComplaint')
      return [Object.hasOwn(bounceTypes, name) ? bounceTypes[name] : undefined, 'Email', 'BouncedAt']
    }
    case 'Delivery':
      return ['delivered', 'Recipient', 'DeliveredAt']
    case 'SubscriptionChange': {
      // Bounces and complaints tell themselves. What an operator suppresses by hand is no answer of the person.
      const isOwn = member(content, 'SuppressSending') === true && member(content, 'Origin') === 'Recipient'
      const isManual = member(content, 'SuppressionReason') === 'ManualSuppression'
      return [isOwn && isManual ? 'unsubscribe' : undefined, 'Recipient', 'ChangedAt']
    }
    default:
      return [undefined, 'Email', 'At']
  }
}

export function receivePostmark({ headers, body, secrets, nowMs }: Incoming): Received {
  const expected = secrets.secret === undefined ? '' : `Basic ${Buffer.from(secrets.secret).toString('base64')}`
  if (expected !== '' && !isSame(headers.authorization ?? '', expected)) return throwUnsigned()
  const content = readJson(body.toString())
  const [type, address, at] = meaningOf(content)
  const reference = member(content, 'MessageID')
  const told = { provider: 'postmark', address: member(content, address), at: member(content, at), reference }
  return collect([type && eventOf({ ...told, type }, nowMs)])
}
