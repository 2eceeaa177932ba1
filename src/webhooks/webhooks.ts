import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Context, Reading } from '../db/context.ts'
import { type Database, masterKeysOf } from '../db/db.ts'
import { deleteInSteps } from '../db/delete-in-steps.ts'
import { type DefinitionCall, differences, throwTooMany } from '../organizations/change-definitions.ts'
import {
  changeOrganization,
  type DefinitionDiff,
  type Locked,
  ownAuthor,
} from '../organizations/change-organization.ts'
import type { WebhookStates } from '../process/observer.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { listPage } from '../route/result.ts'
import { requireScope } from '../route/scopes.ts'
import { pointer, refuse, throwBrokenRule } from '../values/errors.ts'
import { AddressRefused, type AllowedRanges, type Resolve, resolveReachable, urlProblem } from './addresses.ts'
import { scopesOf, throwIfUnknown } from './events.ts'
import { namesAfter, readHeaders, requireSameOrigin } from './request-headers.ts'
import type {
  DeliveriesQuery,
  DeliveryPageShape,
  DeliveryShape,
  ReplayBody,
  TestDeliveryShape,
  WebhookBody,
  WebhookPatch,
  WebhookShape,
} from './schema.ts'
import {
  countWebhooksSql,
  deletePositionSql,
  deleteWebhookSql,
  disableWebhookSql,
  forgetDeliveriesSql,
  insertPositionSql,
  insertWebhookSql,
  listDeliveriesSql,
  listFailingSql,
  listOrganizationsWithWebhooksSql,
  lockPositionSql,
  readBacklogsSql,
  readSecretsSql,
  readStatesSql,
  readTestsSql,
  readWebhooksSql,
  requestReplaySql,
  setPausedSql,
  storeHeadersSql,
  storeSecretsSql,
  updateWebhookSql,
} from './sql.ts'
import { type Secret, unwrapSecrets, wrapHeaders, wrapSecrets } from './stored-secrets.ts'

/** The settings of a webhook, as the change log shows them. */
const settingNames = [
  ...(['url', 'events', 'stacks', 'keys', 'description'] as const),
  ...(['payload', 'active', 'links', 'headers'] as const),
]
type Settings = Pick<WebhookShape, (typeof settingNames)[number]>

export type WebhookRow = Settings & {
  id: number
  disabled_reason: 'gone' | 'failing' | null
  disabled_at: string | null
  failing_since: string | null
  last_success_at: string | null
  created_at: string
  updated_at: string
}

/** A request that changes webhooks, and what their addresses may be. */
export type WebhookCall = Omit<DefinitionCall, 'limits'> & { signal: Signal; allowed: AllowedRanges; resolve: Resolve }

const maxWebhooks = 100
const maxSecrets = 10
const rotationMs = 86_400_000
const resolveMs = 2_000
const secretBytes = 32

/** A new secret, which signs until it is rotated. */
export const newSecret = (): Secret => ({
  secret: `whsec_${randomBytes(secretBytes).toString('base64')}`,
  expires_at: null,
})

/** The secrets that sign at this time. */
export const activeSecrets = (secrets: readonly Secret[], nowMs: number): string[] =>
  secrets.filter(({ expires_at }) => expires_at === null || Date.parse(expires_at) > nowMs).map(({ secret }) => secret)

type ReadWebhook = WebhookRow & { position: number; head: number }
/** A row of {@link readBacklogsSql}: the members of the delivery that holds up the others, or nulls. */
type BacklogRow = { webhook_id: number; deliveries: number; oldest_at: string | null } & (
  | DeliveryShape
  | { sequence: null }
)

function stateOf({ active, disabled_reason, failing_since }: WebhookRow): WebhookShape['state'] {
  if (disabled_reason !== null) return 'disabled'
  if (!active) return 'paused'
  return failing_since === null ? 'active' : 'failing'
}

function webhookToJson(row: ReadWebhook, backlogRow: BacklogRow | undefined): WebhookShape {
  const { disabled_reason, disabled_at, failing_since, last_success_at, position, head, created_at, updated_at } = row
  const disabled = disabled_reason === null ? null : { reason: disabled_reason, at: disabled_at! }
  // The deliveries are read after the webhook, which may be gone by then.
  const none = { webhook_id: row.id, deliveries: 0, oldest_at: null, sequence: null }
  const { webhook_id: _, deliveries, oldest_at, ...blocking } = backlogRow ?? none
  return {
    id: row.id,
    ...settingsOf(row),
    disabled,
    failing_since,
    last_success_at,
    state: stateOf(row),
    position,
    backlog: {
      changes: Math.max(0, head - position),
      deliveries,
      oldest_at,
      blocking: blocking.sequence === null ? null : blocking,
    },
    created_at,
    updated_at,
  }
}

/** The webhook of this id, or all of them. */
export async function readWebhooks(
  { db, organization_id }: Reading,
  id: number | null,
  signal?: Signal,
): Promise<WebhookShape[]> {
  const rows = await db.query<ReadWebhook>(readWebhooksSql, [organization_id, id], signal)
  const values = [organization_id, rows.map(({ id }) => id), new Date().toISOString()]
  const backlogs = rows.length === 0 ? [] : await db.query<BacklogRow>(readBacklogsSql, values, signal)
  const byId = new Map(backlogs.map(backlog => [backlog.webhook_id, backlog]))
  return rows.map(row => webhookToJson(row, byId.get(row.id)))
}

/** Throws a Fault of 404 if the organization has no such webhook. */
export const findWebhook = async (reading: Reading, id: number, signal?: Signal): Promise<WebhookShape> =>
  (await readWebhooks(reading, id, signal))[0] ?? throwNotFound()

function throwNotFound(): never {
  return refuse('not_found', 'There is no such webhook.')
}

/**
 * Throws `forbidden` unless the token may read what the events tell of, and make the links that they carry. A webhook would otherwise give
 * it more than it may have.
 */
export function requireScopes(
  { caller }: Pick<Call, 'caller'>,
  { events, links }: { events: readonly string[]; links?: boolean },
): void {
  for (const scope of scopesOf(events)) requireScope(caller, scope, ', which reads what the webhook tells of')
  if (links) requireScope(caller, 'people:write', ', which makes links')
}

/** Throws 400 for links without values: a link has the address of the person. */
function checkLinks({ links, payload }: Settings): void {
  if (links && payload === 'ids') throwBrokenRule('/links', 'cannot be combined with the payload ids')
}

/** Throws 400 if kith would never send to the URL. A name that does not resolve now is accepted. */
async function checkUrl(url: string, { allowed, resolve }: WebhookCall): Promise<void> {
  const problem = urlProblem(url, allowed)
  if (problem !== undefined) throwBrokenRule('/url', problem)
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
  const checking = resolveReachable(host, allowed, resolve).then(
    () => false,
    error => error instanceof AddressRefused,
  )
  if (await Promise.race([checking, pause(resolveMs, false, { ref: false })]))
    throwBrokenRule('/url', 'is a name of an address that webhooks may not reach (KITH_WEBHOOK_ALLOW)')
}

const settingsOf = (webhook: Settings) =>
  Object.fromEntries(settingNames.map(name => [name, webhook[name]])) as Settings

const jsonOrNull = (value: unknown) => (value === null ? null : JSON.stringify(value))

const storedValues = ({ url, events, stacks, keys, description, payload, active, links }: Settings) =>
  [url, JSON.stringify(events), jsonOrNull(stacks), jsonOrNull(keys), description, payload, active, links] as const

const changeOf = (id: number, operation: DefinitionDiff['operation'], change: { before: object; after: object }) => [
  { subject: 'webhook', id, operation, ...change } as const,
]

const defaultSettings = {
  stacks: null,
  keys: null,
  description: null,
  payload: 'full',
  active: true,
  links: false,
} as const

/** Creates a webhook and returns it with its secret. Its first change is the next one. Throws a Fault of 400. */
export async function createWebhook(call: WebhookCall, body: WebhookBody) {
  const { organization_id } = call
  const { headers: givenHeaders = {}, url, events, ...given } = body
  const headers = readHeaders(givenHeaders)
  const settings: Settings = { url, events, ...defaultSettings, ...given, headers: namesAfter([], headers) }
  checkLinks(settings)
  await checkUrl(settings.url, call)
  const secret = newSecret()
  const masterKeys = masterKeysOf(call.db)
  const webhook = await changeOrganization<WebhookShape>(call, call, async ({ tx, definitions, at }) => {
    throwIfUnknown(settings, definitions)
    const [stored] = await tx.query<{ last_id: number; count: number }>(countWebhooksSql, [organization_id])
    if (stored!.count >= maxWebhooks)
      throwTooMany('The organization has reached its limit of webhooks. Delete one first.', 'webhooks', maxWebhooks)
    const id = stored!.last_id + 1
    const key = { organization_id, id }
    const wrapped = [wrapSecrets(masterKeys, key, [secret]), at, wrapHeaders(masterKeys, key, headers)]
    return {
      statements: [tx.query(insertWebhookSql, [organization_id, id, ...storedValues(settings), ...wrapped])],
      changes: changeOf(id, 'create', { before: {}, after: settings }),
      // The position is behind the entry of the log.
      result: async () => {
        await tx.query(insertPositionSql, [organization_id, id, !settings.active])
        return findWebhook({ db: tx, organization_id }, id)
      },
    }
  })
  return { ...webhook, secret: secret.secret }
}

type WebhookChange = { statements: Promise<unknown>[]; changes?: readonly DefinitionDiff[] }

/**
 * Runs `work` while the log, the position and the webhook of this id cannot change, in this order. Every change of a webhook takes
 * the locks in this order, and its follower takes the last two. Returns the webhook after it. Throws a Fault of 404.
 */
function changeWebhook(
  call: WebhookCall,
  id: number,
  work: (locked: Locked, webhook: ReadWebhook) => WebhookChange | Promise<WebhookChange>,
): Promise<WebhookShape | undefined> {
  const { organization_id } = call
  return changeOrganization<WebhookShape | undefined>(call, call, async locked => {
    const { tx } = locked
    await tx.query(lockPositionSql, [organization_id, id])
    const [webhook] = await tx.query<ReadWebhook>(readWebhooksSql, [organization_id, id])
    const changed = await work(locked, webhook ?? throwNotFound())
    const isDeleted = changed.changes?.[0]?.operation === 'delete'
    return { ...changed, result: async () => (isDeleted ? undefined : findWebhook({ db: tx, organization_id }, id)) }
  })
}

/** Changes a webhook. `authorize` throws if the token may not read what the result tells of. Throws a Fault of 400, 403 or 404. */
export async function patchWebhook(
  call: WebhookCall,
  id: number,
  patch: WebhookPatch,
  authorize: (webhook: Pick<WebhookShape, 'events' | 'links'>) => void,
): Promise<WebhookShape> {
  const { organization_id, signal } = call
  if (patch.url !== undefined) {
    await findWebhook(call, id, signal)
    await checkUrl(patch.url, call)
  }
  const { headers: givenHeaders = {}, ...settings } = patch
  const changed = await changeWebhook(call, id, ({ tx, definitions, at }, webhook) => {
    const current = settingsOf(webhook)
    const headers = readHeaders(givenHeaders ?? Object.fromEntries(current.headers.map(name => [name, null])))
    requireSameOrigin(current, patch.url ?? current.url, headers)
    const next = { ...current, ...settings, headers: namesAfter(current.headers, headers) } as Settings
    authorize(next)
    checkLinks(next)
    throwIfUnknown({ ...next, stacks: patch.stacks ?? null, keys: patch.keys ?? null }, definitions)
    // Values are not compared: a header that is set is a change.
    const setsHeaders = Object.entries(headers).some(
      ([name, value]) => value !== null || current.headers.includes(name),
    )
    const changed = differences(current, settings as Partial<Settings>)
    if (!changed && !setsHeaders) return { statements: [], changes: [] }
    const named = (names: string[]) => (setsHeaders ? { headers: names } : {})
    const before = { ...changed?.before, ...named(current.headers) }
    const after = { ...changed?.after, ...named(next.headers) }
    const wrapped = wrapHeaders(masterKeysOf(call.db), { organization_id, id }, headers)
    const statements = [
      ...(setsHeaders ? [tx.query(storeHeadersSql, [organization_id, id, wrapped])] : []),
      tx.query(updateWebhookSql, [organization_id, id, ...storedValues(next), at]),
      tx.query(setPausedSql, [organization_id, id, !next.active, at]),
    ]
    return { statements, changes: changeOf(id, 'update', { before, after }) }
  })
  return changed!
}

/** Deletes a webhook. Throws a Fault of 404. */
export async function deleteWebhook(call: WebhookCall, id: number): Promise<void> {
  const { organization_id } = call
  await changeWebhook(call, id, ({ tx, at }, webhook) => ({
    statements: [
      tx.query(deleteWebhookSql, [organization_id, id, at]),
      tx.query(deletePositionSql, [organization_id, id]),
    ],
    changes: changeOf(id, 'delete', { before: settingsOf(webhook), after: {} }),
  }))
}

/** Makes a second secret. The ones before it sign for another 24 hours. Throws a Fault of 404. */
export async function rotateSecret(call: WebhookCall, id: number) {
  const { organization_id } = call
  const secret = newSecret()
  const masterKeys = masterKeysOf(call.db)
  const key = { organization_id, id }
  const webhook = await changeWebhook(call, id, async ({ tx, at }) => {
    const [stored] = await tx.query<{ secrets: unknown }>(readSecretsSql, [organization_id, id])
    const nowMs = Date.parse(at)
    const expires_at = new Date(nowMs + rotationMs).toISOString()
    const older = unwrapSecrets(masterKeys, key, stored!.secrets)
      .filter(each => activeSecrets([each], nowMs).length > 0)
      .map(each => ({ ...each, expires_at: each.expires_at ?? expires_at }))
    if (older.length >= maxSecrets)
      throwBrokenRule('', `The webhook has ${maxSecrets} secrets that still sign. Rotate when the first has expired.`)
    const counts = { before: { secrets: older.length }, after: { secrets: older.length + 1 } }
    return {
      statements: [
        tx.query(storeSecretsSql, [organization_id, id, wrapSecrets(masterKeys, key, [...older, secret]), at]),
      ],
      changes: changeOf(id, 'update', counts),
    }
  })
  return { ...webhook!, secret: secret.secret }
}

/** Asks the follower to send the matching changes of a range again. Throws a Fault of 400 or 404. */
export async function replay(call: WebhookCall, id: number, { after, until }: ReplayBody) {
  const { organization_id } = call
  let range = { after, until: until ?? 0 }
  await changeWebhook(call, id, ({ tx, at }, { active, position }) => {
    range = { after, until: Math.min(until ?? position, position) }
    if (until !== undefined && until < after) throwBrokenRule(pointer('until'), 'must not be less than after')
    if (!active) throwBrokenRule('', 'is an inactive webhook. Activate it first.')
    if (range.until <= after) return { statements: [], changes: [] }
    const statements = [
      tx.query(requestReplaySql, [organization_id, id, after, range.until]),
      tx.query(setPausedSql, [organization_id, id, false, at]),
    ]
    return { statements }
  })
  return { after, until: Math.max(after, range.until) }
}

const defaultPage = 50

/** The deliveries of a webhook, newest first, and on the first page its test events. Throws a Fault of 404. */
export async function listDeliveries(
  context: Context,
  id: number,
  { status, state, before, limit = defaultPage }: DeliveriesQuery,
  signal: Signal,
): Promise<DeliveryPageShape> {
  const { db, organization_id } = context
  const [webhook] = await db.query(readWebhooksSql, [organization_id, id], signal)
  if (!webhook) throwNotFound()
  const at = new Date().toISOString()
  const selection = [before ?? Number.MAX_SAFE_INTEGER, limit + 1, status ?? null, at, state ?? null]
  const rows = await db.query<DeliveryShape>(listDeliveriesSql, [organization_id, id, ...selection], signal)
  const isWanted = (test: TestDeliveryShape) =>
    [status ?? test.state, state ?? test.state].every(each => each === test.state)
  type Tests = { tests: TestDeliveryShape[] }
  const [row] = before === undefined ? await db.query<Tests>(readTestsSql, [organization_id, id], signal) : []
  return { ...listPage(rows, limit), tests: (row?.tests ?? []).filter(isWanted) }
}

/**
 * Makes a webhook inactive whose receiver is gone or has failed for too long, and logs it as a change. Returns whether it was
 * active.
 */
export function disableWebhook(
  context: Context,
  id: number,
  reason: 'gone' | 'failing',
  nowMs: number,
): Promise<boolean> {
  const at = new Date(nowMs).toISOString()
  return changeOrganization<boolean>(context, ownAuthor(), async ({ tx, organization_id }) => {
    await tx.query(lockPositionSql, [organization_id, id])
    const rows = await tx.query(disableWebhookSql, [organization_id, id, reason, at])
    if (rows.length === 0) return { changes: [], result: false }
    const changed = { before: { active: true, disabled: null }, after: { active: false, disabled: { reason, at } } }
    return {
      statements: [tx.query(setPausedSql, [organization_id, id, true, at])],
      changes: changeOf(id, 'update', changed),
      result: true,
    }
  })
}

const deliveriesPerStatement = 1_000
const retentionMs = 30 * 86_400_000

/** Deletes deliveries that ended 30 days ago, in small transactions. Returns their number. */
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

export async function readWebhookStates(db: Database): Promise<WebhookStates> {
  const [states] = await db.query<WebhookStates>(readStatesSql, [new Date().toISOString()])
  return states!
}

/** The first 100 webhooks, of all organizations, that fail or were disabled. */
export const listFailingWebhooks = (db: Database) =>
  db.query<
    Pick<WebhookRow, 'id' | 'url' | 'disabled_reason' | 'disabled_at' | 'failing_since'> & { organization: string }
  >(listFailingSql, [])
