import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Context, contextOf } from '../db/context.ts'
import { masterKeysOf } from '../db/db.ts'
import { rowOf } from '../db/master-keys.ts'
import { throwKeyTaken } from '../organizations/change-definitions.ts'
import { type ChangeCall, changeOrganization } from '../organizations/change-organization.ts'
import type { Signal } from '../process/signal.ts'
import type { HookCall } from '../route/page.ts'
import { refuse, throwBrokenRule } from '../values/errors.ts'
import { mailgun } from './providers/mailgun.ts'
import { postmark } from './providers/postmark.ts'
import { type Adapter, keptTokensMs, receive, throwUnsigned } from './providers/provider.ts'
import { sendgrid } from './providers/sendgrid.ts'
import { ses } from './providers/ses.ts'
import { recordEvents } from './record-events.ts'
import type { Provider, SecretName, SourceBody, SourceShape } from './schema.ts'
import {
  deleteSourceSql,
  forgetTokensSql,
  insertSourceSql,
  listSourcesSql,
  noteRequestSql,
  readSourcesSql,
  useTokenSql,
} from './sql.ts'

export const incomingPath = '/v1/deliverability/in'
const maxSources = 20
const maxId = 2 ** 31 - 1

const adapters: Record<Provider, Adapter> = { ses, sendgrid, mailgun, postmark }

type SourceRow = Omit<SourceShape, 'path'> & { secret_path: string }

/**
 * The row that a column of a source is wrapped for. The column is `secret`, or `secret_path`, which alone authenticates
 * a provider without a secret.
 */
export const sourceRow = (organization_id: number, key: string, column: 'secret' | 'secret_path'): string =>
  rowOf('deliverability_sources', organization_id, key, column)

function toJson({ db, organization_id }: Context, { secret_path, ...row }: SourceRow): SourceShape {
  const path = masterKeysOf(db).unwrap(secret_path, sourceRow(organization_id, row.key, 'secret_path'))
  return { ...row, path: `${incomingPath}/${organization_id.toString(36)}-${path}` }
}

export async function listSources(context: Context, signal: Signal): Promise<SourceShape[]> {
  const rows = await context.db.query<SourceRow>(listSourcesSql, [context.organization_id], signal)
  return rows.map(row => toJson(context, row))
}

/** Makes a source. Throws a Fault of 400 or 409. */
export function createSource(context: Context, call: ChangeCall, body: SourceBody): Promise<SourceShape> {
  const { key, provider, ...secrets } = body
  const secret = readSecret(provider, secrets)
  const { organization_id } = context
  return changeOrganization<SourceShape>(context, call, async ({ tx, at }) => {
    const sources = await tx.query(listSourcesSql, [organization_id])
    if (sources.length >= maxSources) throwBrokenRule('', `exceeds the limit of ${maxSources} sources`)
    const keys = masterKeysOf(context.db)
    const path = keys.wrap(randomBytes(16).toString('hex'), sourceRow(organization_id, key, 'secret_path'))
    const values = [key, provider, path, secret && keys.wrap(secret, sourceRow(organization_id, key, 'secret')), at]
    const [row] = await tx.query<SourceRow>(insertSourceSql, [organization_id, ...values])
    return { changes: [], result: toJson(context, row ?? throwKeyTaken('is the key of another source')) }
  })
}

/**
 * The secret that the provider requires. Throws a Fault of 400 for a missing or wrong one, and for secrets of other
 * providers.
 */
function readSecret(provider: Provider, secrets: Partial<Record<SecretName, string>>): string | null {
  const { secretName, isOptional, faultOf } = adapters[provider]
  const { [secretName]: secret, ...others } = secrets
  for (const name of Object.keys(others)) throwBrokenRule(`/${name}`, `is not for the provider ${provider}`)
  if (secret === undefined) return isOptional ? null : throwBrokenRule(`/${secretName}`, `is required for ${provider}`)
  const fault = faultOf?.(secret)
  return fault === undefined ? secret : throwBrokenRule(`/${secretName}`, fault)
}

/** Deletes a source. Throws a Fault of 404. */
export function deleteSource(context: Context, call: ChangeCall, key: string): Promise<true> {
  return changeOrganization<true>(context, call, async ({ tx, organization_id }) => {
    const deleted = await tx.query(deleteSourceSql, [organization_id, key])
    if (deleted.length === 0) refuse('not_found', 'There is no such source.')
    return { changes: [], result: true }
  })
}

type Source = { key: string; provider: Provider; secret_path: string; secret: string | null }

/**
 * The source at an address, with its secret. kith compares all addresses of the organization, because they are stored
 * wrapped.
 */
async function findSource(
  { db, organization_id }: Pick<Context, 'db' | 'organization_id'>,
  secretPath: string,
  signal: Signal,
): Promise<Source | undefined> {
  const keys = masterKeysOf(db)
  const unwrap = (stored: string, key: string, column: 'secret' | 'secret_path') =>
    keys.unwrap(stored, sourceRow(organization_id, key, column))
  const isAsked = ({ key, secret_path }: Source) =>
    keys.hasKeyOf(secret_path) &&
    timingSafeEqual(Buffer.from(unwrap(secret_path, key, 'secret_path')), Buffer.from(secretPath))
  const source = (await db.query<Source>(readSourcesSql, [organization_id], signal)).find(isAsked)
  return source && { ...source, secret: source.secret && unwrap(source.secret, source.key, 'secret') }
}

/**
 * Receives the events of a provider. Throws a Fault of 401, and stores nothing, for a request that the provider did not
 * sign, that is too old, or that is repeated.
 */
export async function receiveEvents(call: HookCall): Promise<{ stored: number; ignored: number }> {
  const { db, headers, body, signal, limits, observer, request_id } = call
  const [, organization, secretPath] = /^([\da-z]{1,6})-([\da-f]{32})$/.exec(call.token) ?? []
  const organization_id = Number.parseInt(organization ?? '', 36)
  if (!secretPath || !(organization_id <= maxId)) return throwUnsigned()
  // Until the source is found, the path may name any organization, so this read must not use an organization's share.
  const source = await findSource({ db, organization_id }, secretPath, signal)
  if (!source) return throwUnsigned()
  const { key, provider, secret } = source
  const nowMs = Date.now()
  const received = await receive(provider, adapters[provider], { headers, body, secret, nowMs })
  const { events, ignored, token, isConfirmed } = received
  const context = contextOf(db.shareOf(organization_id, 'writes'), organization_id)
  const change = { actor: `source:${key}`, request_id, signal, limits }
  const statuses = await recordEvents(context, change, events, async ({ tx, at }) => {
    if (token !== undefined) {
      const hash = createHash('sha256').update(`${key} ${token}`).digest('hex')
      const used = await tx.query(useTokenSql, [organization_id, hash, at])
      if (used.length === 0) throwUnsigned()
      await tx.query(forgetTokensSql, [organization_id, new Date(nowMs - keptTokensMs).toISOString()])
    }
    await tx.query(noteRequestSql, [organization_id, key, isConfirmed ? null : at, isConfirmed ? at : null, ignored])
  })
  const stored = statuses.filter(status => status === 'stored').length
  observer.providerEvents(provider, 'stored', stored)
  observer.providerEvents(provider, 'ignored', ignored)
  return { stored, ignored }
}
