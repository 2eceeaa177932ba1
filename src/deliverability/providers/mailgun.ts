import { createHmac } from 'node:crypto'
import { type Adapter, isSame, member, secondsToMs, throwUnsigned, typeIn } from './provider.ts'

/** The webhooks of Mailgun: HMAC with SHA-256 over a timestamp and a token, which is used only once. */
export const mailgun: Adapter = {
  secretName: 'secret',
  verify({ secret }, content) {
    const [timestamp, token, signature] = ['timestamp', 'token', 'signature'].map(name =>
      member(content, 'signature', name),
    )
    if (typeof token !== 'string' || typeof signature !== 'string' || !secret) return throwUnsigned()
    const hmac = createHmac('sha256', secret).update(`${timestamp}${token}`)
    return isSame(signature, hmac.digest('hex')) ? { token, atMs: secondsToMs(String(timestamp)) } : throwUnsigned()
  },
  read(content) {
    const event = member(content, 'event-data')
    const type = typeIn(types, member(event, 'event'))
    const isTemporary = type === 'hard_bounce' && member(event, 'severity') !== 'permanent'
    const [address, at, reference] = ['recipient', 'timestamp', 'id'].map(name => member(event, name))
    return [{ type: isTemporary ? 'soft_bounce' : type, address, at, reference }]
  },
}

const types = {
  failed: 'hard_bounce',
  complained: 'complaint',
  unsubscribed: 'unsubscribe',
  delivered: 'delivered',
} as const
