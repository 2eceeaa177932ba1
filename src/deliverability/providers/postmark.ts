import { type Adapter, isSame, member, throwUnsigned, typeIn } from './provider.ts'

/** The webhooks of Postmark. They are not signed, so their path is secret, and may require a user and a password. */
export const postmark: Adapter = {
  secretName: 'secret',
  isOptional: true,
  faultOf: secret => (secret.includes(':') ? undefined : 'must have a colon between the user and the password'),
  verify({ headers, secret }) {
    const expected = secret === null ? undefined : `Basic ${Buffer.from(secret).toString('base64')}`
    return expected === undefined || isSame(headers.authorization ?? '', expected) ? {} : throwUnsigned()
  },
  read(content) {
    const kind = String(member(content, 'RecordType'))
    const name = kind === 'Bounce' ? member(content, 'Type') : kind
    // Postmark reports bounces and complaints in separate events. A suppression by an operator is no answer of the
    // person.
    const isForeign =
      kind === 'SubscriptionChange' &&
      !(
        member(content, 'SuppressSending') === true &&
        member(content, 'Origin') === 'Recipient' &&
        member(content, 'SuppressionReason') === 'ManualSuppression'
      )
    const type = isForeign ? undefined : typeIn(types, name)
    const address = member(content, 'Email') ?? member(content, 'Recipient')
    const at = member(content, 'BouncedAt') ?? member(content, 'DeliveredAt') ?? member(content, 'ChangedAt')
    return [{ type, address, at, reference: member(content, 'MessageID') }]
  },
}

const types = {
  HardBounce: 'hard_bounce',
  BadEmailAddress: 'hard_bounce',
  Transient: 'soft_bounce',
  SoftBounce: 'soft_bounce',
  DnsError: 'soft_bounce',
  Blocked: 'soft_bounce',
  SpamComplaint: 'complaint',
  SpamNotification: 'complaint',
  Unsubscribe: 'unsubscribe',
  Delivery: 'delivered',
  SubscriptionChange: 'unsubscribe',
} as const
