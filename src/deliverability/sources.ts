import { createHash, randomBytes } from 'node:crypto'
import { type Context, contextOf } from '../db/context.ts'
import { throwInvalidField, throwKeyTaken } from '../organizations/change-definitions.ts'
import { type ChangeCall, changeOrganization } from '../organizations/change-organization.ts'
import type { Signal } from '../process/signal.ts'
import type { HookCall } from '../route/hook.ts'
import { refuse } from '../values/errors.ts'
import { receiveMailgun } from './providers/mailgun.ts'
import { receivePostmark } from './providers/postmark.ts'
import { keptTokensMs, type Receive, type Secrets, throwUnsigned } from './providers/provider.ts'
import { readPublicKey, receiveSendgrid } from './providers/sendgrid.ts'
import { receiveSes } from './providers/ses.ts'
import { recordEvents } from './record-events.ts'
import type { Provider, SourceBody, SourceShape } from './sources-schema.ts'
import {
  deleteSourceSql,
  findSourceSql,
  forgetTokensSql,
  insertSourceSql,
  listSourcesSql,
  noteConfirmedSql,
  noteEventsSql,
  useTokenSql,
} from './sql.ts'

export const incomingPath = '/v1/deliverability/in'
const maxSources = 20

/** The secrets that each provider has, and those of them that it needs. */
const secretsOf: Record<Provider, { has: keyof Secrets; isOptional?: true }> = {
  ses: { has: 'topic_arn' },
  sendgrid: { has: 'public_key' },
  mailgun: { has: 'secret' },
  postmark: { has: 'secret', isOptional: true },
}

const receivers: Record<Provider, Receive> = {
  ses: receiveSes,
  sendgrid: receiveSendgrid,
  mailgun: receiveMailgun,
  postmark: receivePostmark,
}

type SourceRow = Omit<SourceShape, 'path'> & { secret_path: string }

const toJson = (organization_id: number, { secret_path, ...row }: SourceRow): SourceShape => ({
  key: row.key,
  provider: row.provider,
  path: `${incomingPath}/${organization_id.toString(36)}-${secret_path}`,
  created_at: row.created_at,
  last_event_at: row.last_event_at,
  ignored_events: row.ignored_events,
  confirmed_at: row.confirmed_at,
})

export async function listSources({ db, organization_id }: Context, signal: Signal): Promise<SourceShape[]> {
  const rows = await db.query<SourceRow>(listSourcesSql, [organization_id], signal)
  return rows.map(row => toJson(organization_id, row))
}

/** Makes a source. Throws a Fault of 400 or 409. */
export function createSource(context: Context, call: ChangeCall, body: SourceBody): Promise<SourceShape> {
  const { key, provider, ...secrets } = body
  checkSecrets(provider, secrets)
  const { organization_id } = context
  return changeOrganization<SourceShape>(context, call, async ({ tx, at }) => {
    const sources = await tx.query(listSourcesSql, [organization_id])
    if (sources.length >= maxSources) throwInvalidField('', `exceeds the limit of ${maxSources} sources`)
    const values = [key, provider, randomBytes(16).toString('hex'), JSON.stringify(secrets), at]
    const [row] = await tx.query<SourceRow>(insertSourceSql, [organization_id, ...values])
    return { changes: [], result: toJson(organization_id, row ?? throwKeyTaken('is the key of another source')) }
  })
}

function checkSecrets(provider: Provider, secrets: Secrets): void {
  const { has, isOptional } = secretsOf[provider]
  for (const name of ['public_key', 'secret', 'topic_arn'] as const) {
    if (secrets[name] !== undefined && name !== has)
      throwInvalidField(`/${name}`, `is not for the provider ${provider}`)
    if (secrets[name] === undefined && name === has && !isOptional)
      throwInvalidField(`/${name}`, `is required for ${provider}`)
  }
  if (secrets.public_key !== undefined && !readPublicKey(secrets.public_key))
    throwInvalidField('/public_key', 'must be a public key of the curve P-256 in base64, as SendGrid shows it')
  if (provider === 'postmark' && secrets.secret !== undefined && !secrets.secret.includes(':'))
    throwInvalidField('/secret', 'must have a colon between the user and the password')
}

/** Deletes a source. Throws a Fault of 404. */
export function deleteSource(context: Context, call: ChangeCall, key: string): Promise<void> {
  return changeOrganization<void>(context, call, async ({ tx, organization_id }) => {
    const deleted = await tx.query(deleteSourceSql, [organization_id, key])
    if (deleted.length === 0) refuse('not_found', 'There is no such source.')
    return { changes: [], result: undefined }
  })
}

/**
 * Receives the events of a provider. Throws a Fault of 401 for a request that it did not sign, that is too old or that came before, and stores
 * nothing of it.
 */
export async function receiveEvents(call: HookCall): Promise<{ stored: number; ignored: number }> {
  const { db, headers, body, signal, limits, observer, request_id } = call
  const [, organization, secretPath] = /^([\da-z]{1,6})-([\da-f]{32})$/.exec(call.token) ?? []
  const organization_id = Number.parseInt(organization ?? '', 36)
  if (!secretPath || !(organization_id <= maxId)) return throwUnsigned()
  // Until the source is found, the path may name any organization, so it must not use the share of one.
  type Found = { key: string; provider: Provider; secrets: Secrets }
  const [source] = await db.query<Found>(findSourceSql, [organization_id, secretPath], signal)
  if (!source) return throwUnsigned()
  const { key, provider, secrets } = source
  const nowMs = Date.now()
  const { events, ignored, token, isConfirmed } = await receivers[provider]({ headers, body, secrets, nowMs })
  const context = contextOf(db.shareOf(organization_id, 'writes'), organization_id)
  const change = { actor: `source:${key}`, request_id, signal, limits }
  const statuses = await recordEvents(context, change, events, async ({ tx, at }) => {
    if (token !== undefined) {
      const hash = createHash('sha256').update(`${key} ${token}`).digest('hex')
      const used = await tx.query(useTokenSql, [organization_id, hash, at])
      if (used.length === 0) throwUnsigned()
      await tx.query(forgetTokensSql, [organization_id, new Date(nowMs - keptTokensMs).toISOString()])
    }
    if (isConfirmed) await tx.query(noteConfirmedSql, [organization_id, key, at])
    else await tx.query(noteEventsSql, [organization_id, key, at, ignored])
  })
  const stored = statuses.filter(status => status === 'stored').length
  observer.providerEvents(provider, 'stored', stored)
  observer.providerEvents(provider, 'ignored', ignored)
  return { stored, ignored }
}

const maxId = 2 ** 31 - 1
