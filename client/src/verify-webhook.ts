import { concat } from './ledger-text.ts'
import type { Change, Webhook, WebhookEventKind } from './wire.ts'

/** A change as a webhook with the payload `ids` sends it: without values and without the external identifier. */
export type ChangeIds = Pick<Change, 'sequence' | 'at' | 'subject' | 'id' | 'stack_key' | 'operation' | 'version'>

/** The members of a change that depend on its subject. Definitions have a number as id. */
type OfSubject<Subject> = { subject: Subject; id: Subject extends 'person' | 'record' ? string : number }

/** A grant that waits for its confirmation: the address of the person, and the link to send there. */
export type Confirmation = { consent_type_id: number; channel: 'email' | 'sms'; address: string; confirm_url: string }

/**
 * The body of a webhook's request. A webhook with `links` sends `confirmations` with the event of a grant that waits
 * for its confirmation. `Payload` is the payload of the webhook. `type` begins with the subject of the change in
 * `data`: `person.updated` has the change of a person.
 */
export type WebhookEvent<Payload extends Webhook['payload'] = 'full'> =
  | {
      [Subject in Change['subject']]: {
        type: `${Subject}.${WebhookEventKind}`
        timestamp: string
        data: (Payload extends 'ids' ? ChangeIds : Change) & OfSubject<Subject>
        confirmations?: Confirmation[]
      }
    }[Change['subject']]
  | { type: 'webhook.test'; timestamp: string; data: { webhook_id: number } }

/** The headers of a request: those of Node's `http`, of `fetch`, or any other object of names and values. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | { [name: string]: string | readonly string[] | undefined }

/** The request is not from the webhook, was altered, or is older than five minutes. Answer it with 401. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
}

const toleranceSeconds = 300
const encoder = new TextEncoder()

/**
 * Verifies a request by Standard Webhooks 1.0 and returns its event. `payload` is the body as it arrived, before any
 * parser. `secrets` are the secrets that the receiver accepts: during a rotation, the old and the new one. Throws a
 * {@link WebhookVerificationError} if no signature matches or `webhook-timestamp` is more than five minutes off. Throws
 * a TypeError for an invalid secret, and for a body that is neither text nor bytes.
 *
 * ```ts
 * import { verifyWebhook } from '@kith/client'
 *
 * async function receive(request: Request): Promise<Response> {
 *   const event = await verifyWebhook(await request.text(), request.headers, 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD')
 *   if (event.type !== 'webhook.test') console.log(event.type, event.data.sequence)
 *   return new Response(null, { status: 204 })
 * }
 * const forged = new Request('https://receiver.example/kith', { method: 'POST', body: '{}' })
 * console.log(await receive(forged).catch(error => error.name)) // WebhookVerificationError
 * ```
 */
export async function verifyWebhook<Payload extends Webhook['payload'] = 'full'>(
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
): Promise<WebhookEvent<Payload>> {
  const keys = await Promise.all([secrets].flat().map(importKey))
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name =>
    headerOf(headers, name),
  )
  if (!id || !timestamp || !signatures) throw new WebhookVerificationError('A header of Standard Webhooks is missing.')
  const ageSeconds = Date.now() / 1_000 - Number(timestamp)
  if (!/^\d+$/.test(timestamp) || Math.abs(ageSeconds) > toleranceSeconds)
    throw new WebhookVerificationError('webhook-timestamp is more than five minutes off.')
  const body = typeof payload === 'string' ? encoder.encode(payload) : payload
  // A body parser in front of the receiver leaves an object, and the types often do not show it.
  if (!ArrayBuffer.isView(body)) throw new TypeError('the payload must be the body as it arrived: a text or bytes')
  const message = concat([encoder.encode(`${id}.${timestamp}.`), body])
  if (!(await isSigned(message, signatures, keys)))
    throw new WebhookVerificationError('No signature matches: the request is not from the webhook, or was changed.')
  return JSON.parse(new TextDecoder().decode(body))
}

function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined
  const value = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return typeof value === 'string' ? value : value?.join(' ')
}

const algorithm = { name: 'HMAC', hash: 'SHA-256' }

type Key = Awaited<ReturnType<typeof importKey>>

async function importKey(secret: string) {
  const bytes = typeof secret === 'string' ? bytesOf(secret.replace(/^whsec_/, '')) : undefined
  if (!bytes?.length) throw new TypeError('a secret of a webhook begins with whsec_ and continues in base64')
  return crypto.subtle.importKey('raw', bytes, algorithm, false, ['verify'])
}

/** Whether one of the signatures, such as `v1,…`, is valid for one of the keys. Other versions are ignored. */
async function isSigned(message: Uint8Array<ArrayBuffer>, signatures: string, keys: readonly Key[]): Promise<boolean> {
  for (const signature of signatures.split(' ')) {
    const bytes = signature.startsWith('v1,') ? bytesOf(signature.slice(3)) : undefined
    // `verify` compares in constant time.
    for (const key of bytes ? keys : []) if (await crypto.subtle.verify('HMAC', key, bytes!, message)) return true
  }
  return false
}

/** Decodes base64. Returns undefined for other text. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), character => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
