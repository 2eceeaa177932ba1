import type { Context } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { deleteInSteps } from '../db/delete-in-steps.ts'
import type { WebhookStates } from '../process/observer.ts'
import type { Signal } from '../process/signal.ts'
import { listPage } from '../route/result.ts'
import type { DeliveriesQuery, DeliveryPageShape, DeliveryShape, TestDeliveryShape } from './schema.ts'
import {
  forgetDeliveriesSql,
  listDeliveriesSql,
  listFailingSql,
  listOrganizationsWithWebhooksSql,
  readStatesSql,
  readTestsSql,
  readWebhooksSql,
} from './sql.ts'
import { throwNoWebhook, type WebhookRow } from './webhooks.ts'

const defaultPage = 50

/** Lists the deliveries of a webhook, newest first, and on the first page its test events. Throws a Fault of 404. */
export async function listDeliveries(
  { db, organization_id }: Context,
  id: number,
  { status, state, before, limit = defaultPage }: DeliveriesQuery,
  signal: Signal,
): Promise<DeliveryPageShape> {
  const [webhook] = await db.query(readWebhooksSql, [organization_id, id], signal)
  if (!webhook) throwNoWebhook()
  const at = new Date().toISOString()
  const selection = [before ?? Number.MAX_SAFE_INTEGER, limit + 1, status ?? null, at, state ?? null]
  const rows = await db.query<DeliveryShape>(listDeliveriesSql, [organization_id, id, ...selection], signal)
  const isWanted = (test: TestDeliveryShape) =>
    [status, state].every(wanted => wanted === undefined || wanted === test.state)
  type Tests = { tests: TestDeliveryShape[] }
  const [row] = before === undefined ? await db.query<Tests>(readTestsSql, [organization_id, id], signal) : []
  return { ...listPage(rows, limit), tests: (row?.tests ?? []).filter(isWanted) }
}

const deliveriesPerStatement = 1_000
const retentionMs = 30 * 86_400_000

/** Deletes deliveries that ended more than 30 days ago, in small transactions. Returns their number. */
export async function forgetDeliveries(
  db: Database,
  { signal, nowMs = Date.now() }: { signal?: Signal; nowMs?: number } = {},
): Promise<number> {
  const before = new Date(nowMs - retentionMs).toISOString()
  const limit = deliveriesPerStatement
  let forgotten = 0
  for (const { organization_id } of await db.query<{ organization_id: number }>(listOrganizationsWithWebhooksSql, []))
    forgotten += await deleteInSteps(db, forgetDeliveriesSql, [organization_id, before, limit], { limit, signal })
  return forgotten
}

/** The number of active, failing and disabled webhooks of all organizations, and of their waiting deliveries. */
export async function readWebhookStates(db: Database): Promise<WebhookStates> {
  const [states] = await db.query<WebhookStates>(readStatesSql, [new Date().toISOString()])
  return states!
}

/** The first 100 failing or disabled webhooks of all organizations. */
export const listFailingWebhooks = (db: Database) =>
  db.query<
    Pick<WebhookRow, 'id' | 'url' | 'disabled_reason' | 'disabled_at' | 'failing_since'> & { organization: string }
  >(listFailingSql, [])
