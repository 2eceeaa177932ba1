import { masterKeysOf } from '../db/db.ts'
import { isSuccess } from './schedule.ts'
import type { TestDeliveryShape } from './schema.ts'
import { createSender, outcomeColumns } from './send.ts'
import { readSendingSql, recordTestSql } from './sql.ts'
import { activeSecrets, type StoredSecrets, unwrapSending } from './stored-secrets.ts'
import { findWebhook, type WebhookCall } from './webhooks.ts'

/** The number of test events of a webhook that are kept. */
const maxTests = 20

/** Sends a signed test event once, stores its outcome and returns it. Throws a Fault of 404. */
export async function sendTest(
  call: WebhookCall,
  id: number,
  { id: messageId, limitMs }: { id: string; limitMs: number },
) {
  const { db, organization_id, signal, allowed, resolve } = call
  await findWebhook(call, id, signal)
  type Row = StoredSecrets & { url: string; log_id: string }
  const [webhook] = await db.query<Row>(readSendingSql, [organization_id, id], signal)
  const { url, log_id } = webhook!
  const { secrets, request_headers: headers } = unwrapSending(masterKeysOf(db), { organization_id, id }, webhook!)
  const timestamp = new Date().toISOString()
  const body = JSON.stringify({ type: 'webhook.test', timestamp, data: { webhook_id: id } })
  const sender = createSender({ allowed, resolve, timeoutMs: limitMs })
  try {
    const active = activeSecrets(secrets, Date.now())
    const message = { url, id: `${log_id}:test-${messageId}`, body, secrets: active, headers }
    const outcome = await sender.send(message, signal)
    const result = outcomeColumns(outcome)
    const isDelivered = isSuccess(outcome)
    const state = isDelivered ? 'delivered' : 'failed'
    const test: TestDeliveryShape = { message_id: message.id, type: 'webhook.test', state, at: timestamp, ...result }
    await db.query(recordTestSql, [organization_id, id, JSON.stringify(test), maxTests])
    return { delivered: isDelivered, ...result }
  } finally {
    await sender.close()
  }
}
