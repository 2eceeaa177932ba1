import { setTimeout as pause } from 'node:timers/promises'
import type { Context, Reading } from '../db/context.ts'
import { masterKeysOf } from '../db/db.ts'
import { type DefinitionCall, differences, throwTooMany } from '../organizations/change-definitions.ts'
import {
  changeOrganization,
  type DefinitionDiff,
  type Locked,
  ownAuthor,
} from '../organizations/change-organization.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { requireScope } from '../route/scopes.ts'
import { pointer, refuse, throwBrokenRule } from '../values/errors.ts'
import { AddressRefused, type AllowedRanges, type Resolve, resolveReachable, urlProblem } from './addresses.ts'
import { scopesOf, throwIfUnknown } from './events.ts'
import { namesAfter, readHeaders, requireSameOrigin } from './request-headers.ts'
import type { DeliveryShape, ReplayBody, WebhookBody, WebhookPatch, WebhookShape } from './schema.ts'
import {
  countWebhooksSql,
  deletePositionSql,
  deleteWebhookSql,
  disableWebhookSql,
  insertPositionSql,
  insertWebhookSql,
  lockPositionSql,
  readBacklogsSql,
  readSecretsSql,
  readWebhooksSql,
  requestReplaySql,
  setPausedSql,
  storeHeadersSql,
  storeSecretsSql,
  updateWebhookSql,
} from './sql.ts'
import { isActive, newSecret, unwrapSecrets, wrapHeaders, wrapSecrets } from './stored-secrets.ts'

/** The settings of a webhook that the change log shows. */
const settingKeys = ['url', 'events', 'stacks', 'keys', 'description', 'payload', 'active', 'links', 'headers'] as const
type Settings = Pick<WebhookShape, (typeof settingKeys)[number]>

export type WebhookRow = Settings & {
  id: number
  disabled_reason: 'gone' | 'failing' | null
  disabled_at: string | null
  failing_since: string | null
  last_success_at: string | null
  created_at: string
  updated_at: string
}

/** A request that changes webhooks, with the rules for their addresses. */
export type WebhookCall = Omit<DefinitionCall, 'limits'> & { signal: Signal; allowed: AllowedRanges; resolve: Resolve }

const maxWebhooks = 100
const maxSecrets = 10
const rotationMs = 86_400_000
const resolveMs = 2_000

type ReadWebhook = WebhookRow & { position: number; head: number }
/** A row of {@link readBacklogsSql}. The other members describe the delivery that blocks the others, or are null. */
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
  // The deliveries are read after the webhook, which may have been deleted in between.
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

/** Reads the webhook with this id, or all. */
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

/** Returns a webhook. Throws a Fault of 404 if the organization does not have it. */
export const findWebhook = async (reading: Reading, id: number, signal?: Signal): Promise<WebhookShape> =>
  (await readWebhooks(reading, id, signal))[0] ?? throwNoWebhook()

export function throwNoWebhook(): never {
  return refuse('not_found', 'There is no such webhook.')
}

/**
 * Throws `forbidden` unless the token may read the subjects of the events and create the links in them. A webhook would
 * otherwise give the token more rights.
 */
export function requireScopes(
  { caller }: Pick<Call, 'caller'>,
  { events, links }: { events: readonly string[]; links?: boolean },
): void {
  for (const scope of scopesOf(events)) requireScope(caller, scope, ', which reads what the webhook tells of')
  if (links) requireScope(caller, 'people:write', ', which makes links')
}

/** Throws 400 for links with a payload without values, because a link contains the address of the person. */
function checkLinks({ links, payload }: Settings): void {
  if (links && payload === 'ids') throwBrokenRule('/links', 'cannot be combined with the payload ids')
}

/** Throws 400 for a URL that kith would never send to. A name that does not resolve at the moment is accepted. */
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

const settingsOf = (webhook: Settings) => Object.fromEntries(settingKeys.map(name => [name, webhook[name]])) as Settings

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

/**
 * Creates a webhook and returns it with its secret. It receives changes from the next one on. Throws a Fault of 400.
 */
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
      // The position follows the log entry of the webhook.
      result: async () => {
        await tx.query(insertPositionSql, [organization_id, id, !settings.active])
        return findWebhook({ db: tx, organization_id }, id)
      },
    }
  })
  return { ...webhook, secret: secret.secret }
}

/**
 * Locks the position and the webhook with this id, after changeOrganization has locked the log. Every change of a
 * webhook takes the locks in this order, and its follower takes the last two. Throws a Fault of 404.
 */
async function lockWebhook({ tx, organization_id }: Locked, id: number): Promise<ReadWebhook> {
  await tx.query(lockPositionSql, [organization_id, id])
  const [webhook] = await tx.query<ReadWebhook>(readWebhooksSql, [organization_id, id])
  return webhook ?? throwNoWebhook()
}

/**
 * Changes a webhook. `authorize` throws if the token may not read its events, before the change or after it. Throws a
 * Fault of 400, 403 or 404.
 */
export async function patchWebhook(
  call: WebhookCall,
  id: number,
  patch: WebhookPatch,
  authorize: (webhook: Pick<WebhookShape, 'events' | 'links'>) => void,
): Promise<WebhookShape> {
  const { headers: givenHeaders = {}, ...given } = patch
  if (given.url !== undefined) {
    await findWebhook(call, id, call.signal)
    await checkUrl(given.url, call)
  }
  return changeOrganization<WebhookShape>(call, call, async locked => {
    const { tx, organization_id, definitions, at } = locked
    const current = settingsOf(await lockWebhook(locked, id))
    const headers = readHeaders(givenHeaders ?? Object.fromEntries(current.headers.map(name => [name, null])))
    requireSameOrigin(current, given.url ?? current.url, headers)
    const next = { ...current, ...given, headers: namesAfter(current.headers, headers) } as Settings
    // Deliveries that wait have the current events, and a new URL gets them.
    authorize({ ...next, events: [...current.events, ...next.events] })
    checkLinks(next)
    throwIfUnknown({ ...next, stacks: given.stacks ?? null, keys: given.keys ?? null }, definitions)
    const result = () => findWebhook({ db: tx, organization_id }, id)
    const changed = differences(current, given as Partial<Settings>)
    // Values are not compared, because setting a header always counts as a change.
    const changesHeaders = Object.keys(headers).some(name => headers[name] !== null || current.headers.includes(name))
    if (!changed && !changesHeaders) return { changes: [], result }
    const loggedHeaders = ({ headers }: Settings) => changesHeaders && { headers }
    const before = { ...changed?.before, ...loggedHeaders(current) }
    const after = { ...changed?.after, ...loggedHeaders(next) }
    const statements = [
      tx.query(updateWebhookSql, [organization_id, id, ...storedValues(next), at]),
      tx.query(setPausedSql, [organization_id, id, !next.active, at]),
    ]
    if (changesHeaders) {
      const wrapped = wrapHeaders(masterKeysOf(call.db), { organization_id, id }, headers)
      statements.push(tx.query(storeHeadersSql, [organization_id, id, wrapped]))
    }
    return { statements, changes: changeOf(id, 'update', { before, after }), result }
  })
}

/** Deletes a webhook. Throws a Fault of 404. */
export function deleteWebhook(call: WebhookCall, id: number): Promise<void> {
  return changeOrganization<void>(call, call, async locked => {
    const { tx, organization_id, at } = locked
    const before = settingsOf(await lockWebhook(locked, id))
    return {
      statements: [
        tx.query(deleteWebhookSql, [organization_id, id, at]),
        tx.query(deletePositionSql, [organization_id, id]),
      ],
      changes: changeOf(id, 'delete', { before, after: {} }),
      result: undefined,
    }
  })
}

/** Makes a new secret. Earlier ones sign for another 24 hours. Throws a Fault of 404. */
export async function rotateSecret(call: WebhookCall, id: number) {
  const secret = newSecret()
  const masterKeys = masterKeysOf(call.db)
  const webhook = await changeOrganization<WebhookShape>(call, call, async locked => {
    const { tx, organization_id, at } = locked
    const key = { organization_id, id }
    await lockWebhook(locked, id)
    const [stored] = await tx.query<{ secrets: unknown }>(readSecretsSql, [organization_id, id])
    const nowMs = Date.parse(at)
    const expires_at = new Date(nowMs + rotationMs).toISOString()
    const older = unwrapSecrets(masterKeys, key, stored!.secrets)
      .filter(each => isActive(each, nowMs))
      .map(each => ({ ...each, expires_at: each.expires_at ?? expires_at }))
    if (older.length >= maxSecrets)
      throwBrokenRule('', `The webhook has ${maxSecrets} secrets that still sign. Rotate when the first has expired.`)
    const wrapped = wrapSecrets(masterKeys, key, [...older, secret])
    const counts = { before: { secrets: older.length }, after: { secrets: older.length + 1 } }
    return {
      statements: [tx.query(storeSecretsSql, [organization_id, id, wrapped, at])],
      changes: changeOf(id, 'update', counts),
      result: () => findWebhook({ db: tx, organization_id }, id),
    }
  })
  return { ...webhook, secret: secret.secret }
}

/**
 * Makes the follower send the matching changes of a range again, and returns the range. Throws a Fault of 400 or 404.
 */
export function replay(call: WebhookCall, id: number, { after, until }: ReplayBody): Promise<Required<ReplayBody>> {
  return changeOrganization<Required<ReplayBody>>(call, call, async locked => {
    const { tx, organization_id, at } = locked
    const { active, position } = await lockWebhook(locked, id)
    if (until !== undefined && until < after) throwBrokenRule(pointer('until'), 'must not be less than after')
    if (!active) throwBrokenRule('', 'is an inactive webhook. Activate it first.')
    const last = Math.min(until ?? position, position)
    if (last <= after) return { changes: [], result: { after, until: after } }
    return {
      statements: [
        tx.query(requestReplaySql, [organization_id, id, after, last]),
        tx.query(setPausedSql, [organization_id, id, false, at]),
      ],
      result: { after, until: last },
    }
  })
}

/**
 * Disables a webhook whose receiver is gone or has failed for too long, and logs the change. Returns whether the
 * webhook was active.
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
