import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { scopes } from '../../src/route/scopes.ts'
import { segmentFollower } from '../../src/segments/segment-follower.ts'
import { startSession } from '../../src/sessions/sessions.ts'
import { follow } from '../support/followers.ts'
import { ndjsonHeaders } from '../support/lines.ts'
import type { Service } from '../support/service.ts'
import type { Sender } from './sender.ts'

/** An organization that requests are sent to one at a time, so its state depends only on the seed. */
export type TestTenant = {
  id: number
  token: string
  /** By scope, a token with all scopes but that one. */
  tokenWithout: Map<string, string>
  sender: Sender
  service: Service
  /** Internal identifiers that create responses returned. */
  people: string[]
  records: Record<string, string[]>
  /** The sessions of the console, also those that have been ended. */
  sessions: string[]
  /** The id of a client of the organization. */
  client_id: string
  account_id: string
  /** The internal identifier of the person whose answers are sealed, if there is one. */
  sealed?: string
  /** The sequence number of the last change. */
  head: number
}

/** The id of an import that the tenant has made. */
export const ownImport = 'own-import'

/** Attributes that every test tenant declares. generators.ts generates their values. Ids count from 1 in this order. */
export const attributes = [
  { owner: 'people', key: 'city', type: 'text', indexed: true },
  { owner: 'people', key: 'score', type: 'number', indexed: true },
  { owner: 'people', key: 'joined', type: 'datetime', indexed: true },
  { owner: 'people', key: 'born', type: 'date', indexed: true },
  { owner: 'people', key: 'vip', type: 'boolean', indexed: true },
  { owner: 'people', key: 'tags', type: 'text', cardinality: 'many', indexed: true },
  { owner: 'people', key: 'counts', type: 'number', cardinality: 'many' },
  { owner: 'people', key: 'anything', type: 'json' },
  { owner: 'people', key: 'referrer', type: 'person' },
  { owner: 'people', key: 'mixed', type: 'person' },
  { owner: 'people', key: 'friends', type: 'person', cardinality: 'many' },
  { owner: 'people', key: 'bought', type: 'stack', target_stack: 'orders', cardinality: 'many' },
  { owner: 'orders', key: 'total', type: 'number', indexed: true },
  { owner: 'orders', key: 'exact', type: 'number' },
  { owner: 'orders', key: 'buyer', type: 'person' },
  { owner: 'visits', key: 'page', type: 'text', searchable: true },
  { owner: 'orders', key: 'code', type: 'text', indexed: true, unique: true, pattern: '^.{0,100}$' },
] as const

export async function createTestTenant(service: Service, sender: Sender): Promise<TestTenant> {
  const { id, key, token, send } = await service.organization()
  for (const [stack, kind] of [
    ['orders', 'item'],
    ['visits', 'event'],
  ])
    await send('POST', '/v1/schema/stacks', { key: stack, kind })
  for (const attribute of attributes) {
    const created = await send('POST', '/v1/schema/attributes', attribute)
    if (created.status !== 201) throw new Error(JSON.stringify(created.body))
  }
  await send('POST', '/v1/schema/consent-types', { key: 'surveys', channels: [{ channel: 'email' }] })
  await send('POST', '/v1/segments', { key: 'in_rome', filter: { 'attribute_values.city': 'Rome' } })
  await send('POST', '/v1/roles', { key: 'reader', scopes: ['people:read'] })
  // The webhook stays active, so that it can be replayed.
  await send('POST', '/v1/webhooks', { url: 'https://receiver.invalid/', events: ['person.*'] })
  const headers = { ...ndjsonHeaders, 'X-Request-Id': ownImport }
  await send('POST', '/v1/people/import', '{"last_name":"Imported"}\n', headers)
  const apiClient = await send('POST', '/v1/clients', { name: 'Shop', scopes: ['people:read'] })
  const client_id: string = apiClient.body.data.client_id
  const account = await send('POST', '/v1/accounts', { name: 'Ada Lovelace', role: null })
  const account_id: string = account.body.data.id
  await follow(service.db, [searchFollower(), segmentFollower()])
  const tokens = scopes.map(async missing => {
    const others = scopes.filter(scope => scope !== missing).join(' ')
    return [missing, await service.tokenFor(key, others)] as const
  })
  const tokenWithout = new Map(await Promise.all(tokens))
  const sessions: string[] = []
  for (let number = 0; number < 3; number++) {
    const started = await startSession(service.db, { id, key }, { name: 'tests', scope: 'people:read', method: 'code' })
    sessions.push(started.session.id)
  }
  const created = { people: [], records: { orders: [], visits: [] }, sessions }
  const tenant = { id, token, tokenWithout, sender, service, client_id, account_id, ...created, head: 0 }
  return { ...tenant, head: await readHead(tenant) }
}

/** Reads the sequence number of the organization's last change. A refused request does not change it. */
export async function readHead({ service, id }: Pick<TestTenant, 'service' | 'id'>): Promise<number> {
  const text = 'select sequence from change_heads where organization_id = $1'
  const [head] = await service.sql<{ sequence: number }>(text, [id])
  return head!.sequence
}

const tables = [
  'entities',
  'links',
  'terms',
  'changes',
  'consent_history',
  'stacks',
  'attributes',
  'consent_types',
  'consent_texts',
  'change_heads',
  'clients',
  'fills',
  'sort_indexes',
  'followers',
  'segments',
  'roles',
  'segment_members',
  'segment_changes',
  'segment_checks',
  'retention_rules',
  'retention_notices',
  'retention_runs',
  'person_holds',
  'set_aside_people',
  'webhooks',
  'webhook_deliveries',
  'organization_settings',
  'link_keys',
  'aliases',
  'merges',
  'erasures',
  'erased_answers',
  'tombstones',
  'tombstone_keys',
  'name_versions',
  'sessions',
  'accounts',
  'tokens',
  'search_indexes',
  'search_documents',
  'search_words',
  'search_features',
]
/**
 * The SQL of a digest of an organization's rows in a table, of which it reads no value: PostgreSQL stores every version of a
 * row at another address (ctid), with the transaction that wrote it (xmin).
 */
const digestSqlOf = (table: string): string =>
  `(select concat(count(*), ':', sum(hashtextextended(concat(ctid, xmin), 0))) from ${table} where organization_id = $1)`
const digestSql = `select concat_ws('/', ${tables.map(digestSqlOf).join(', ')}) as digest`

/** Reads a digest of all rows of an organization. Two digests are equal if no row was written in between. */
export async function readDigest(service: Service, organization_id: number): Promise<string> {
  const [row] = await service.sql<{ digest: string }>(digestSql, [organization_id])
  return row!.digest
}
