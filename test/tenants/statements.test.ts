import { createHmac, randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createViews } from '../../cli/views/create-views.ts'
import { accessFollower } from '../../src/accesses/follower.ts'
import { acceptInvitation, changePassword, findInvitation, startSessionWithPassword } from '../../src/auth/accounts.ts'
import { createClient, readClientPage, revokeClient, verifyClient } from '../../src/auth/clients.ts'
import { renewLogId } from '../../src/changes/log-id.ts'
import { announceCommit } from '../../src/db/commit-events.ts'
import { contextOf } from '../../src/db/context.ts'
import { type Statement, statement } from '../../src/db/db.ts'
import { createMasterKeys, masterKeyOf } from '../../src/db/master-keys.ts'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { searchFollowerName } from '../../src/entities/indexes/search-index-sql.ts'
import { addressAnswersFollower } from '../../src/entities/write/store/earlier-answers.ts'
import type { Follower } from '../../src/followers/follower.ts'
import { createFollowers } from '../../src/followers/followers.ts'
import { forgetKeys } from '../../src/idempotency/kept-responses.ts'
import { completeMerges } from '../../src/identity/lead-links.ts'
import { jobsFollower } from '../../src/jobs/run-jobs.ts'
import { rewrapAll } from '../../src/keys-at-rest/keys-at-rest.ts'
import { auditLedger } from '../../src/ledger/audit.ts'
import { findEntry, type StoredEntry } from '../../src/ledger/ledger.ts'
import { ledgerFollower } from '../../src/ledger/seal.ts'
import { checkIndexes } from '../../src/operations/doctor/database.ts'
import { deleteOrganization } from '../../src/organizations/deletion.ts'
import * as dossierStatements from '../../src/rights/dossier-sql.ts'
import { applyErasures } from '../../src/rights/erasure/apply-erasures.ts'
import { completeErasures, erasePerson } from '../../src/rights/erasure/erase-person.ts'
import { retentionRulesFollower } from '../../src/rights/lifetimes/run-rules.ts'
import { retentionFollower } from '../../src/rights/retention.ts'
import { findPlaces } from '../../src/search/search.ts'
import { parseSearchText } from '../../src/search/search-text.ts'
import { segmentFollower } from '../../src/segments/segment-follower.ts'
import { createSignInCode, readSession, startSessionWithCode } from '../../src/sessions/sessions.ts'
import { findLiveSessionsSql } from '../../src/sessions/sql.ts'
import { dropAllViews, dropRetired, renewViews } from '../../src/sql-views/sql-views.ts'
import { webhookFollower } from '../../src/webhooks/deliver.ts'
import { forgetDeliveries } from '../../src/webhooks/deliveries.ts'
import { giveAlias } from '../support/aliases.ts'
import { follow } from '../support/followers.ts'
import { exportAll, importLines, linesFrom } from '../support/lines.ts'
import { formOf, requestPage } from '../support/pages.ts'
import { createLoopbackSender, type Receiver, startReceiver } from '../support/receiver.ts'
import { type Reply, useOwnService } from '../support/service.ts'
import { createShop, expectSuccess, type Shop } from '../support/shop.ts'
import { copyRows, noteChangesOf, tablesOf, watchTwin } from './twins.ts'

const service = useOwnService({ KITH_WEBHOOK_ALLOW: '127.0.0.0/8', KITH_ACCESS_LOG: 'strict' })
let shop: Shop
let twin: Shop
let tables: string[]
let nick: string
let merged: string
let receiver: Receiver
let hoursLater = 0
beforeAll(async () => {
  receiver = await startReceiver()
  // The shares of organizations would bypass the watched database object.
  service.db.shareOf = () => service.db
  tables = await tablesOf(service)
  shop = await createShop(service, 'referrer', 'friends', 'employer')
  twin = await createShop(service, 'referrer', 'friends', 'employer')
  const { send } = shop
  await expectSuccess(send('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' }))
  for (const body of [
    { owner: 'people', key: 'city', type: 'text', indexed: true },
    { owner: 'people', key: 'late', type: 'text' },
    { owner: 'companies', key: 'founder', type: 'person' },
  ])
    await expectSuccess(send('POST', '/v1/schema/attributes', body))
  for (const external_id of ['ada', 'bob', 'eve', 'gone'])
    await expectSuccess(
      send('POST', '/v1/people', {
        ...person,
        external_id,
        attribute_values: { ...person.attribute_values, referrer: 'gone' },
      }),
    )
  await expectSuccess(send('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text: 'Yes.' }))
  await expectSuccess(
    importLines(shop, '/v1/people/import', linesFrom(answered)).then(() => send('GET', '/v1/people/eve')),
  )
  // A page with this person is read in portions.
  const large = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(key => [key, 'x'.repeat(60_000)]))
  await expectSuccess(send('POST', '/v1/people', { external_id: 'large', attribute_values: large }))
  await expectSuccess(
    send('POST', '/v1/stacks/companies', { external_id: 'acme', attribute_values: { founder: 'ada' } }),
  )
  await expectSuccess(send('POST', '/v1/stacks/visits', { external_id: 'v1', attribute_values: { page: '/' } }))
  await expectSuccess(send('POST', '/v1/people', { external_id: 'forgotten' }, { 'Idempotency-Key': 'old' }))
  await expectSuccess(send('POST', '/v1/people/batch', { operations: [] }, { 'Idempotency-Key': 'old' }))
  await service.sql(`update idempotency_keys set at = at - interval '2 days' where organization_id = $1`, [shop.id])
  await expectSuccess(send('POST', '/v1/webhooks', { url: receiver.url, events: ['person.*'] }))
  await expectSuccess(send('POST', '/v1/people', { external_id: 'told' }))
  // The next version has a basis in the log.
  const told = Array.from({ length: 126 }, (_, n) => ({
    op: 'patch',
    external_id: 'told',
    body: { first_name: `T${n}` },
  }))
  await expectSuccess(send('POST', '/v1/people/batch', { operations: told }))
  receiver.answer = response => response.writeHead(500).end()
  await deliver()
  await expectSuccess(send('POST', '/v1/people/ada/consent-links'))
  await expectSuccess(send('PATCH', '/v1/schema/settings', { display_name: 'Shop' }))
  for (const key of ['standing', 'ending'])
    await expectSuccess(send('POST', '/v1/segments', { key, filter: linkedToGone }))
  for (const external_id of ['nick', 'merged']) await expectSuccess(send('POST', '/v1/people', { external_id }))
  nick = (await send('GET', '/v1/people/nick')).body.data.id
  merged = (await send('GET', '/v1/people/merged')).body.data.id
  await expectSuccess(send('POST', '/v1/people/nick/merge', { from: 'merged' }))
  await giveAlias(service, shop, nick, 'nickname')
  // A write that reads the definitions again would run in a savepoint, which the watch does not support.
  await expectSuccess(send('PATCH', '/v1/people/nick', { first_name: 'Nick' }))
  await copyRows(service, tables, shop.id, twin.id)
  // `follow` lets this follower begin in every organization, which would change the twin.
  await service.sql('insert into followers (organization_id, name) values ($1, $2) on conflict do nothing', [
    twin.id,
    searchFollowerName,
  ])
  await noteChangesOf(service, tables, twin.id)
})
afterAll(() => receiver.close())

/** Sends what is due to the webhooks, an hour later each time. */
async function deliver() {
  hoursLater += 1
  const nowMs = () => Date.now() + hoursLater * 3_600_000
  const sender = createLoopbackSender()
  const follower = webhookFollower({ sender, nowMs, linkBase: () => service.address })
  // The webhooks of the twin are not watched.
  const work: Follower['work'] = async task =>
    task.organization_id === shop.id ? follower.work(task) : { sequence: task.head }
  await follow(service.db, [{ ...follower, work, maxConcurrent: 1 }], { nowMs })
  await sender.close()
}

type Ok = (method: string, path: string, body?: unknown) => Promise<Reply>

/** Reads pages with fields, included entities and counts. The pages must have the same people as whole ones. */
async function readMembers(ok: Ok, members: object, direction: string) {
  for (const [path, body] of [
    ['/v1/people/list', { sorting_type: direction }],
    ['/v1/people/filter', { filter: { state: 'active' }, sort_direction: direction }],
    ['/v1/people/filter', { filter: { 'attribute_values.city': { $gte: 'A' } }, sort_direction: direction }],
    ['/v1/people/bob/related', { target: 'people', sorting_type: direction }],
  ] as const) {
    const whole = (await ok('POST', path, { ...body, cursor_configuration: { size: 500 } })).body.data
    const page = (await ok('POST', path, { ...body, cursor_configuration: { size: 500 }, ...members })).body.data
    expect([page.count, page.items.length]).toEqual([whole.items.length, whole.items.length])
  }
}

const person = {
  email: 'ada@example.com',
  consents: [{ consent_type_id: 1, channel: 'email', state: true }],
  attribute_values: { city: 'Rome', late: 'x', employer: 'acme', friends: ['ada', 'bob'] },
}

/** Answers with evidence, of which the second is superseded. */
const answered = ['2021-01-01T00:00:00Z', '2020-01-01T00:00:00Z'].map(collected_at => ({
  external_id: 'eve',
  consents: [{ consent_type_id: 1, channel: 'email', state: true, collected_at, text_version: 1, source: 'file' }],
}))

const statementsDir = fileURLToPath(new URL('../../src', import.meta.url))

async function listStatementNames(): Promise<string[]> {
  const files = (await readdir(statementsDir, { recursive: true })).filter(file => /sql\.ts$/.test(file))
  const modules = await Promise.all(files.map(file => import(pathToFileURL(join(statementsDir, file)).href)))
  return modules.flatMap(module => statementsOf(module)).map(({ name }) => name)
}

const isStatement = (value: unknown): value is Statement =>
  typeof value === 'object' && value !== null && 'name' in value && 'text' in value

/** The statements that a module exports. Some are grouped in objects, by direction or by identifier. */
const statementsOf = (module: object): Statement[] =>
  Object.values(module)
    .flatMap(value => (isStatement(value) ? value : Object.values(value as object)))
    .filter(isStatement)

/** Statements of exports, dossiers and audits, which use a connection of their own. */
const exportStatements = [
  ...['copy_all', 'read_answers_after', 'begin_audit', 'read_entry_range'],
  ...['find_foreign_texts', 'find_foreign_answers', 'find_foreign_address_answers'],
  ...statementsOf(dossierStatements).map(({ name }) => name),
]

/** Statements on organizations, on signing keys or on all tables, and those that create an organization. */
const globalStatements = [
  ...['find_outdated_sql_views', 'find_organization_of_sql_views', 'list_sql_view_names', 'end_sessions_of_login'],
  'analyze_entities',
  'analyze_terms',
  'count_ledger_entries',
  'insert_ledger_key',
  'list_ledger_keys',
  'lock_ledger_keys',
  'read_ledger_signer',
  'retire_ledger_key',
  'find_news',
  'find_news_of',
  'find_retention',
  'find_access_work',
  'find_unsealed',
  'find_organization',
  'find_deleted_organization',
  'mark_organization_deleted',
  'find_organizations',
  'find_clients',
  'find_live_sessions',
  'find_tokens',
  'mark_tokens_used',
  'insert_change_head',
  'insert_first_consent_type',
  'insert_organization',
  'insert_signing_key',
  ...['signing_keys', 'ledger_keys', 'link_keys', 'webhooks', 'sources'].map(name => `find_wrapped_${name}`),
  'store_wrapped_signing_keys',
  'store_wrapped_ledger_keys',
  'insert_tombstone_key',
  'estimate_changes',
  'read_last_backup',
  'record_backup',
  'digest_versions',
  'list_organizations_with_expired_keys',
  'delete_dead_keys',
  'delete_expired_codes',
  'delete_expired_tokens',
  'delete_expired_sessions',
  'delete_verifying_key',
  'extend_signing_key',
  'list_failing_followers',
  'list_failing_webhooks',
  'find_retention_rule_news',
  'list_paused_retention_rules',
  'list_organizations',
  'list_organizations_with_unfinished_erasures',
  'list_unfinished_merges',
  'list_organizations_with_webhooks',
  'list_signing_keys',
  'lock_signing_keys',
  'prefer_nothing',
  'prefer_order',
  'search_alone',
  'read_heads',
  'read_sequences',
  'read_standby',
  'read_follower_lag',
  'read_signing_key',
  'read_verifying_keys',
  'silence_older_keys',
  'read_signing_keys',
  'read_versions',
  'read_webhook_states',
  // The checks of kith doctor: src/operations/operations.test.ts.
  'count_strangers',
  'find_table',
  'read_archiver',
  'read_clock',
  'read_oldest_transaction',
  'read_migrations',
  'read_rights',
  'read_server',
  'read_index_sample',
]

/** Repeats writes with an Idempotency-Key, and with one that has expired, which writes of one entity and other endpoints store in two ways. */
async function repeatWithKeys({ id, send }: Shop) {
  for (const key of ['new', 'new', 'old']) {
    await expectSuccess(send('POST', '/v1/people/upsert', { external_id: 'again' }, { 'Idempotency-Key': key }))
    await expectSuccess(send('POST', '/v1/people/batch', { operations: [] }, { 'Idempotency-Key': key }))
  }
  await expectSuccess(send('DELETE', '/v1/people/forgotten'))
  await expectSuccess(send('POST', '/v1/people', { external_id: 'forgotten' }, { 'Idempotency-Key': 'old' }))
  await service.sql(`update idempotency_keys set at = at - interval '2 days' where organization_id = $1`, [id])
  await forgetKeys(service.db)
}

async function useClients({ id, key, send }: Shop) {
  const { db } = service
  const credentials = await createClient(db, { organizationKey: key, name: 'tests', scope: 'people:read' })
  expect(await verifyClient(db, credentials)).toBeDefined()
  expect((await readClientPage(contextOf(db, id), {})).items).toHaveLength(1)
  await revokeClient(db, credentials.client_id)
  const ok = (method: string, path: string, body?: unknown) => expectSuccess(send(method, path, body))
  const { client_id } = (await ok('POST', '/v1/clients', { name: 'Shop', scopes: ['people:read'] })).body.data
  for (const path of ['', '?limit=1', `?before=${client_id}`, `/${client_id}`]) await ok('GET', `/v1/clients${path}`)
  await ok('DELETE', `/v1/clients/${client_id}`)
  const { jti } = (await ok('POST', '/v1/tokens', { scopes: ['people:read'], name: 'reports', expires_in: 60 })).body
    .data
  for (const path of ['', '?limit=1', `?before=${jti}`]) await ok('GET', `/v1/tokens${path}`)
  await ok('DELETE', `/v1/tokens/${jti}`)
  await ok('POST', '/v1/roles', { key: 'reader', scopes: ['people:read'], fields: { people: { read: ['email'] } } })
  await ok('PATCH', '/v1/roles/reader', { name: 'Reader' })
  await ok('GET', '/v1/keys')
}

/** Makes an account, whose person accepts the invitation, signs in and changes the password. */
async function useAccounts({ id, key, send }: Shop) {
  const { db } = service
  const password = 'a long river bends'
  const turn = { address: '192.0.2.1' }
  const ok = async (method: string, path: string, body?: unknown) =>
    (await expectSuccess(send(method, path, body))).body.data
  const account = await ok('POST', '/v1/accounts', { name: 'Ada Lovelace', role: null })
  const path = `/v1/accounts/${account.id}`
  const code = (await ok('POST', `${path}/invitation`)).invitation_path.split('#code=')[1]
  const invitation = (await findInvitation(db, code))!
  const { session } = (await acceptInvitation(db, { invitation, code, password }, turn))!
  const credentials = { organizationKey: key, name: 'ada lovelace', password }
  expect(await startSessionWithPassword(db, credentials, turn)).toBeDefined()
  const passwords = { current_password: password, new_password: 'another long river' }
  const ids = { account_id: account.id, session_id: session.id }
  expect(await changePassword(contextOf(db, id), ids, passwords, turn)).toBe(true)
  for (const state of ['disabled', 'active']) await ok('PATCH', path, { state })
  expect((await ok('GET', '/v1/accounts')).items).toHaveLength(1)
  await ok('DELETE', path)
}

/** Reads, indexes, forgets and deletes entries of the access log. A part of the index begins at a thousand batches. */
async function useAccessLog({ id, send }: Shop) {
  const { db } = service
  for (const path of ['/v1/access-log', '/v1/access-log?kind=security', `/v1/people/internal/${nick}/accesses`])
    await expectSuccess(send('GET', path))
  await service.sql(
    `insert into access_batches select $1, b.id - 4096 * n, b.kind, b.hashes, b.entries
     from (select * from access_batches where organization_id = $1 order by id desc limit 1) b, generate_series(1, 1000) n`,
    [id],
  )
  const work = (hours: number, retentionDays: number) =>
    accessFollower({ retentionDays, nowMs: () => Date.now() + hours * 3_600_000, pausePerWork: 0 }).work({
      ...contextOf(db, id),
      ...{ id: 1, after: 0, head: 0, signal: new AbortController().signal, isHeld: () => true },
      hold: async () => {},
      advance: async () => {},
    })
  await accessFollower({ retentionDays: 1 }).passOver!(db, [])
  await work(1, 365)
  await work(0, 365)
  await work(48, 1)
}

/** Starts a session of the console, reads it by its cookie, and ends it by the API. */
async function useSessions({ id, key, send }: Shop) {
  const { db } = service
  const code = await createSignInCode(db, { organizationKey: key, name: 'tests', scope: 'people:read' })
  const { token, session } = (await startSessionWithCode(db, code))!
  expect(await readSession(contextOf(db, id), token)).toMatchObject({ isLive: true })
  expect(await db.query(findLiveSessionsSql, [[id], [session.id]])).toEqual([{ organization_id: id, id: session.id }])
  const { body } = await expectSuccess(send('GET', '/v1/sessions'))
  expect(body.data.items).toMatchObject([{ id: session.id }])
  await expectSuccess(send('DELETE', `/v1/sessions/${session.id}`))
}

async function countConsents({ send }: Shop) {
  for (const question of [{}, { consent_type_id: 1, channel: 'email' }])
    await expectSuccess(send('POST', '/v1/consents/statistics', { interval: 'day', ...question }))
}

/** Records events of addresses, by the API and as a provider. */
async function useDeliverability({ send }: Shop, id: string) {
  const ok = (method: string, path: string, body?: unknown) => expectSuccess(send(method, path, body))
  const event = { channel: 'email', address: 'bounced@example.com', type: 'hard_bounce' }
  const unknown = { ...event, address: 'nobody@example.com', type: 'unsubscribe' }
  await ok('POST', '/v1/deliverability', {
    events: [event, unknown, { ...event, external_id: 'bob', address: undefined }],
  })
  await ok('GET', '/v1/deliverability')
  await ok('GET', '/v1/deliverability/events')
  for (const path of ['bob', `internal/${id}`]) await ok('GET', `/v1/people/${path}/deliverability`)
  await ok('DELETE', '/v1/deliverability/email/bounced@example.com')
  await ok('PATCH', '/v1/schema/settings', { suppression_days: 90 })
  const secret = 'signing key'
  const { path } = (await ok('POST', '/v1/deliverability/sources', { key: 'mail', provider: 'mailgun', secret })).body
    .data
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const signature = createHmac('sha256', secret).update(`${timestamp}token`).digest('hex')
  const body = JSON.stringify({ signature: { timestamp, token: 'token', signature } })
  expect((await fetch(service.address + path, { method: 'POST', body })).status).toBe(200)
  await ok('GET', '/v1/deliverability/sources')
  await ok('DELETE', '/v1/deliverability/sources/mail')
}

/** Uses every endpoint and runs the background tasks. */
async function useEveryEndpoint(shop: Shop) {
  const { send } = shop
  await repeatWithKeys(shop)
  await useClients(shop)
  await useAccounts(shop)
  await useSessions(shop)
  await countConsents(shop)
  const ok = (method: string, path: string, body?: unknown) => expectSuccess(send(method, path, body))
  const ada = (await ok('GET', '/v1/people/ada')).body.data
  const acme = (await ok('GET', '/v1/stacks/companies/acme')).body.data
  for (const query of ['version=1', `at=${ada.updated_at}`]) await ok('GET', `/v1/people/ada?${query}`)
  await ok('POST', '/v1/people', { external_id: 'new', attribute_values: { referrer: 'born', city: 'Paris' } })
  await ok('PATCH', '/v1/people/ada', {
    sms_consent: true,
    attribute_values: { city: 'Oslo', friends: ['eve', 'unborn'] },
  })
  await ok('GET', `/v1/people/ada?version=${ada.version + 1}`)
  await ok('PUT', `/v1/people/internal/${ada.id}`, { external_id: 'ada2', attribute_values: { city: 'Rome' } })
  await ok('POST', '/v1/people/upsert', { external_id: 'bob', email_consent: false })
  await useDeliverability(shop, ada.id)
  const gone = (await ok('GET', '/v1/people/gone')).body.data
  await ok('DELETE', '/v1/people/gone')
  await ok('POST', `/v1/people/internal/${gone.id}/restore`)
  await ok('DELETE', '/v1/people/gone')
  await ok('GET', `/v1/people/internal/${ada.id}`)
  for (const count of [true, false])
    await ok('POST', `/v1/people/internal/${ada.id}/related`, { target: 'people', count })
  for (const query of ['subject=stack', 'operation=delete', 'entity=gone']) await ok('GET', `/v1/changes?${query}`)
  // The waiting writes are one set. It changes the person again and again, to a version of which the log has a basis.
  const shown = { Prefer: 'return=representation' }
  const patches = Array.from({ length: 4 }, (_, n) =>
    expectSuccess(send('PATCH', '/v1/people/told', { first_name: `L${n}` }, shown)),
  )
  await Promise.all(patches)
  const told = (await ok('GET', '/v1/people/told')).body.data
  for (const query of ['version=130', `at=${told.created_at}`, `at=${told.updated_at}`])
    await ok('GET', `/v1/people/told?${query}`)
  await ok('GET', '/v1/stacks/companies/acme')
  await ok('GET', `/v1/stacks/companies/internal/${acme.record_id}`)
  // An export has a connection of its own, which is not watched. It must return every person once, as a read shows it.
  const people = await exportAll(shop, '/v1/people/export')
  expect(new Set(people.map(({ id }) => id)).size).toBe(people.length)
  for (const exported of people)
    expect(exported).toEqual((await ok('GET', `/v1/people/internal/${exported.id}`)).body.data)
  expect(await exportAll(shop, '/v1/stacks/companies/export')).toHaveLength(1)
  // A dossier has one, too. It must show each thing once, as the twin has the same.
  const dossier = (await ok('GET', `/v1/people/internal/${ada.id}/dossier`)).body.data as object[]
  expect(new Set(dossier.map(line => JSON.stringify(line))).size).toBe(dossier.length)
  for (const by of ['email', 'mobile', 'name']) await findDuplicates(shop, by)
  await ok('PATCH', `/v1/stacks/companies/internal/${acme.record_id}`, { attribute_values: { founder: 'bob' } })
  await ok('POST', '/v1/stacks/visits', { external_id: 'v1', attribute_values: { page: '/' } })
  for (const atomic of [true, false])
    await ok('POST', '/v1/people/batch', {
      atomic,
      operations: [
        { op: 'patch', id: ada.id, body: { last_name: `L${atomic}` } },
        { op: 'create', body: { attribute_values: { friends: ['bob'] } } },
        { op: 'upsert', external_id: 'eve', body: { attribute_values: { city: null } } },
      ],
    })
  const lines = Array.from({ length: 300 }, (_, n) => ({
    external_id: n === 0 ? 'ada2' : `line${n}`,
    first_name: 'Line',
  }))
  expect((await importLines(shop, '/v1/people/import', linesFrom(lines))).counts).toMatchObject({
    created: 299,
    updated: 1,
  })
  const { items: imports } = (await ok('GET', '/v1/imports')).body.data
  await ok('GET', `/v1/imports?before=${imports[0].id}`)
  await ok('POST', `/v1/imports/${imports[0].id}/undo`, { dry_run: true })
  await importLines(shop, '/v1/people/import', linesFrom([{ external_id: 'mistake' }]), { 'X-Request-Id': 'mistake' })
  await ok('POST', '/v1/imports/mistake/undo', {})
  const saved = await ok('PUT', '/v1/import-mappings', { owner: 'people', header: ['Nr'], fields: ['external_id'] })
  await ok('GET', '/v1/import-mappings')
  await ok('DELETE', `/v1/import-mappings/${saved.body.data.id}`)
  // More changes than one statement stores and logs.
  const operations = lines.slice(1).map(({ external_id }) => ({ op: 'patch', external_id, body: { last_name: 'All' } }))
  await ok('POST', '/v1/people/batch', { atomic: true, operations })
  expect((await importLines(shop, '/v1/people/import', linesFrom(answered))).counts).toMatchObject({ unchanged: 2 })
  for (const direction of ['asc', 'desc']) {
    const cursor_configuration = { size: 2, after_id: ada.id }
    await ok('POST', '/v1/people/list', { sorting_type: direction, cursor_configuration })
    await ok('POST', '/v1/people/list', { sorting_type: direction })
    for (const field of ['updated_at', 'last_name', 'attribute_values.city']) {
      const sort = { field, direction }
      await ok('POST', '/v1/people/list', { sort })
      for (const filter of filters(ada.id)) await ok('POST', '/v1/people/filter', { filter, sort })
    }
    await ok('PATCH', '/v1/people/bob', { last_name: direction })
    await ok('POST', '/v1/stacks/companies/list', { sorting_type: direction })
    await ok('POST', '/v1/people/bob/related', { target: 'people', sorting_type: direction })
    await ok('POST', `/v1/stacks/companies/acme/related`, { target: 'people', sorting_type: direction })
    for (const fields of [['attribute_values'], ['external_id', 'attribute_values.friends']])
      await readMembers(ok, { fields, include: ['friends'], labels: true, count: true }, direction)
  }
  for (const filter of filters(ada.id)) await ok('POST', '/v1/people/filter', { filter, sort_direction: 'asc' })
  // The first filter searches the stack for the key, the second only the changes since.
  for (const _ of [1, 2]) await ok('POST', '/v1/people/filter', { filter: { 'attribute_values.nothing': 1 } })
  await ok('POST', '/v1/stacks/companies/filter', {
    filter: { 'attribute_values.founder': { $some: { email: person.email } } },
  })
  for (const filter of filters(ada.id))
    await ok('POST', '/v1/people/aggregate', { filter, group_by: ['attribute_values.referrer', 'state'] })
  const byNumber = { field: 'incoming.people.friends', measure: { op: 'count' }, where: { state: 'active' } }
  for (const filtered of [{}, { external_id: 'ada' }])
    await ok('POST', '/v1/people/filter', { sort: byNumber, filter: filtered })
  const ofFriends = ['attribute_values.city', 'attribute_values.employer'].map(key => `attribute_values.friends.${key}`)
  for (const group_by of [['attribute_values.referrer.email'], ofFriends])
    await ok('POST', '/v1/people/aggregate', { filter: { email: person.email }, group_by })
  await recognizePeople(shop)
  await useAliases(shop)
  await mergePeople(shop)
  await changeDefinitions(send)
  await useRules(shop)
  await readLog(shop, ada.id)
  await backfillIndexes(service.db)
  for (const filter of filters(ada.id)) await ok('POST', '/v1/people/filter', { filter })
  await ok('PATCH', '/v1/schema/attributes/4', { indexed: false })
  await backfillIndexes(service.db)
  await useObservedKeys(shop)
  await useRetention(shop)
  await useSegments(shop)
  await useLifetimes(shop)
  await runJobs(shop)
  await useWebhooks(shop)
  await useLedger(shop)
  await useLinks(shop)
  await searchWords(shop)
  await nameCountry(shop)
  await checkIndexes(service.db)
  await useErasures(shop)
  await useAccessLog(shop)
  await followLog(shop)
}

/** Declares a unique attribute, writes its values, and lists the stored ones that stand against its rules. */
async function useRules({ send }: Shop) {
  const ok = (method: string, path: string, body?: unknown) => expectSuccess(send(method, path, body))
  const attributes = '/v1/schema/attributes'
  const rules = { type: 'text', indexed: true, unique: true, pattern: '^.$' }
  const { id } = (await ok('POST', attributes, { owner: 'people', key: 'badge', ...rules })).body.data
  for (const [external_id, badge] of Object.entries({ bob: 'x', eve: 'y' }))
    await ok('PATCH', `/v1/people/${external_id}`, { attribute_values: { badge } })
  for (const unique of [false, true]) await ok('PATCH', `${attributes}/${id}`, { unique })
  expect((await send('PATCH', '/v1/people/eve', { attribute_values: { badge: 'x' } })).status).toBe(400)
  expect((await ok('GET', `${attributes}/${id}/violations`)).body.data.items).toEqual([])
}

/** Two people share a key. The twin has the same people. */
async function findDuplicates({ send }: Shop, by: string) {
  const { items } = (await expectSuccess(send('POST', '/v1/people/duplicates', { by: [by] }))).body.data
  const shared = {
    email: 'twice@example.com',
    mobile_number: '+393331234567',
    last_name: 'L',
    date_of_birth: '1990-01-01',
  }
  for (const external_id of ['one', 'other'])
    await expectSuccess(send('POST', '/v1/people/upsert', { external_id: `${external_id} of ${by}`, ...shared }))
  const after = (await expectSuccess(send('POST', '/v1/people/duplicates', { by: [by] }))).body.data.items
  expect(after.length).toBeGreaterThan(0)
  expect(after.length).toBeGreaterThanOrEqual(items.length)
  await useSetAsides(send, [`one of ${by}`, `other of ${by}`])
}

/** Sets two people aside and takes it back. */
async function useSetAsides(send: Shop['send'], external_ids: string[]) {
  const path = '/v1/people/duplicates/set-aside'
  const { id } = (await expectSuccess(send('POST', path, { external_ids }))).body.data
  await expectSuccess(send('POST', path, { external_ids }))
  await expectSuccess(send('GET', path))
  await expectSuccess(send('GET', `/v1/people/${encodeURIComponent(external_ids[0]!)}/duplicates`))
  await expectSuccess(send('DELETE', `${path}/${id}`))
}

/** Lists the undeclared keys of one organization and declares one. The twin has the same. */
async function useObservedKeys({ send }: Shop) {
  const { items } = (await expectSuccess(send('GET', '/v1/schema/observed?owner=visits'))).body.data
  expect(items.map(({ key }: { key: string }) => key)).toContain('page')
  const body = { owner: 'visits', key: 'page', type: 'text' }
  for (const dry_run of [true, false])
    expect(
      (await expectSuccess(send('PUT', '/v1/schema/observed/declare', { ...body, dry_run }))).body.data,
    ).toMatchObject({ fits: 1, misfits: 0 })
}

/** Erases an expired record and empties old changes of one organization. The follower of the twin is not watched. */
async function useRetention({ id, send }: Shop) {
  await expectSuccess(send('PATCH', '/v1/schema/stacks/visits', { retention_days: 1 }))
  const nowMs = () => Date.now() + 2 * 86_400_000
  const follower = retentionFollower({ logRetentionDays: 30, nowMs, pausePerWork: 0 })
  const work: Follower['work'] = async task =>
    task.organization_id === id ? follower.work(task) : { sequence: task.after, notBeforeMs: nowMs() + 86_400_000 }
  await follow(service.db, [{ ...follower, work, maxConcurrent: 1 }], { nowMs })
  expect((await send('GET', '/v1/stacks/visits/v1')).status).toBe(404)
}

const { consents } = person

/** The people with a friend whose language is not Italian or who is unknown. */
const linkedToGone = { 'attribute_values.friends': { $some: { language: { $neq: 'it' } } } }

/** Keeps who is in the segments, which the twin has too, and reads their feed. */
async function useSegments({ id, send }: Shop) {
  const ok = (method: string, path: string, body?: unknown, headers = {}) =>
    expectSuccess(send(method, path, body, headers))
  let hours = 0
  const followOwn = async () => {
    hours += 1
    const nowMs = () => Date.now() + hours * 3_600_000
    const follower = segmentFollower({ nowMs, sourcesPerRead: hours % 2 === 0 ? 0 : 100 })
    // The segments of the twin are not watched.
    const work: Follower['work'] = async task =>
      task.organization_id === id ? follower.work(task) : { sequence: task.head }
    await follow(service.db, [{ ...follower, work, maxConcurrent: 1 }], { nowMs })
  }
  const linkedFromNobodyElse = { 'incoming.people.friends': { $none: { external_id: 'somebody else' } } }
  await ok('POST', '/v1/segments', {
    key: 'writable',
    filter: { contactable: { consent_type_id: 1, channel: 'email' } },
  })
  await ok('POST', '/v1/segments', { key: 'fresh', filter: { $segment: 'standing', ...linkedFromNobodyElse } })
  await followOwn()
  const before = (await ok('GET', '/v1/segments/fresh/people')).body.data.items
  expect(before.length).toBeGreaterThan(0)
  for (const external_id of ['segmented', 'unsegmented'])
    await ok('POST', '/v1/people', { external_id, language: 'en', attribute_values: { friends: ['segmented'] } })
  await followOwn()
  await ok('PATCH', '/v1/people/segmented', { language: 'it' })
  await ok('POST', '/v1/people/unsegmented/merge', { from: 'segmented' })
  const { id: erased } = (await ok('GET', '/v1/people/unsegmented')).body.data
  await ok('POST', `/v1/people/internal/${erased}/erase`, {
    reason: 'Request of the person',
  })
  await followOwn()
  const { items } = (await ok('GET', '/v1/changes?segment=standing&segment=fresh')).body.data
  expect(items.length).toBeGreaterThan(0)
  await ok('GET', '/v1/changes?segment=fresh', undefined, { Accept: 'application/x-ndjson' })
  expect((await ok('GET', '/v1/segments/fresh/members')).body.data.people.length).toBeGreaterThan(0)
  await ok('PATCH', '/v1/segments/fresh', { filter: { $not: { $segment: 'standing' } } })
  await ok('DELETE', '/v1/segments/ending')
  // The clock moves the people of this segment from the second hour on.
  const lately = { created_at: { $gte: { $ago: 'PT1H' } } }
  await ok('POST', '/v1/segments', { key: 'lately', filter: lately })
  for (const _ of [1, 2]) await followOwn()
  await ok('GET', '/v1/segments')
}

/** Holds people, and lets rules announce, delete and erase people. The rules of the twin are not watched. */
async function useLifetimes({ id, send }: Shop) {
  const ok = (method: string, path: string, body?: unknown) => expectSuccess(send(method, path, body))
  const language = 'lt'
  await ok('POST', '/v1/segments', { key: 'old', filter: { language } })
  for (const external_id of ['old1', 'old2', 'old3']) await ok('POST', '/v1/people', { external_id, language })
  for (const reason of ['Case 1', 'Case 2']) await ok('POST', '/v1/people/old3/hold', { reason })
  await ok('GET', '/v1/holds')
  const rules = '/v1/retention-rules'
  for (const action of ['delete', 'erase'])
    await ok('POST', rules, { segment: 'old', key: action, after_days: 1, action, daily_limit: 1, active: true })
  const nowMs = (days: number) => () => Date.now() + days * 86_400_000
  const followOwn = async (follower: Follower, days: number) => {
    const work: Follower['work'] = async task =>
      task.organization_id === id ? follower.work(task) : { sequence: task.head }
    await follow(service.db, [{ ...follower, work, maxConcurrent: 1 }], { nowMs: nowMs(days) })
  }
  await followOwn(segmentFollower({ nowMs: nowMs(1) }), 1)
  for (const days of [2, 10]) {
    const options = { originName: service.config.ledgerOrigin, nowMs: nowMs(days), pausePerWork: 0 }
    await followOwn(retentionRulesFollower(options), days)
  }
  expect((await send('GET', '/v1/people/old1')).status).toBe(404)
  await ok('DELETE', '/v1/people/old3/hold')
  for (const path of [rules, `${rules}/1`, `${rules}/1/preview`, `${rules}/1/runs`]) await ok('GET', path)
  await ok('PATCH', `${rules}/1`, { after_days: 2 })
  await ok('DELETE', '/v1/segments/old')
  await ok('DELETE', `${rules}/1`)
}

/** Changes, deletes and erases people by jobs, lists what they were refused, and undoes them. */
async function runJobs({ id, send }: Shop) {
  const ok = async (method: string, path: string, body?: unknown) =>
    (await expectSuccess(send(method, path, body))).body.data
  const language = 'ji'
  for (const external_id of ['job1', 'job2']) await ok('POST', '/v1/people', { external_id, language })
  const ids = [(await ok('GET', '/v1/people/job1')).id, '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f']
  const run = async (change: object, rest: object = { filter: { language } }) => {
    await ok('POST', '/v1/people/bulk', { ...rest, change, dry_run: true })
    const job = await ok('POST', '/v1/people/bulk', { ...rest, change })
    const options = { originName: service.config.ledgerOrigin, limits: service.config.limits, pausePerWork: 0 }
    const follower = jobsFollower(options)
    const work: Follower['work'] = async task =>
      task.organization_id === id ? follower.work(task) : { sequence: task.head }
    await follow(service.db, [{ ...follower, work, maxConcurrent: 1 }])
    return job.id
  }
  const patched = await run({ op: 'patch', body: { last_name: 'Job' } })
  const named = await run({ op: 'patch', body: { first_name: 'Job' } }, { ids })
  for (const path of ['', `?before=${named}`, `/${named}`, `/${named}/refused`, `/${named}/refused?after=${ids[0]}`])
    await ok('GET', `/v1/jobs${path}`)
  await ok('POST', `/v1/jobs/${patched}/cancel`)
  await ok('POST', `/v1/jobs/${patched}/undo`, {})
  await ok('POST', `/v1/jobs/${await run({ op: 'delete' })}/undo`, {})
  await run({ op: 'erase', reason: 'asked' })
}

/** Looks people up and matches them by email and phone. */
async function recognizePeople({ send }: Shop) {
  const email = 'match@example.com'
  const mobile_number = '+39 333 7654321'
  const match = ['external_id', 'email', 'mobile']
  for (const external_id of ['match', 'alias'])
    await expectSuccess(send('POST', '/v1/people/upsert', { match, external_id, email, mobile_number }))
  for (const body of [{ email }, { mobile_number }, { external_id: 'alias' }])
    expect((await expectSuccess(send('POST', '/v1/people/lookup', body))).body.data.items).toHaveLength(1)
  const lines = linesFrom([{ email }, { external_id: 'alias', first_name: 'M' }])
  const path = '/v1/people/import?match=external_id,email'
  expect((await importLines({ send }, path, lines)).counts).toMatchObject({ unchanged: 1, updated: 1 })
}

/** Finds people and records by words, and indexes them as they change. The words of the erased remain for the erasures. */
async function searchWords({ id, send }: Shop) {
  const ok = (method: string, path: string, body?: unknown) => expectSuccess(send(method, path, body))
  const index = () => follow(service.db, [searchFollower()])
  // The index begins with the first search.
  expect((await send('POST', '/v1/people/search', { text: 'ada' })).status).toBe(503)
  const motto = { owner: 'companies', key: 'motto', type: 'text', searchable: true }
  const attribute = (await ok('POST', '/v1/schema/attributes', motto)).body.data
  await ok('POST', '/v1/stacks/companies', { external_id: 'words', attribute_values: { motto: 'Numerical engines' } })
  for (const external_id of ['w1', 'w2']) await ok('POST', '/v1/people', { external_id, first_name: 'Wilhelmina' })
  await index()
  for (const text of ['wilhelmina', 'wil w', 'wilhelmna w1', 'w2', 'match@example.com', '+39 333 7654321'])
    expect((await ok('POST', '/v1/people/search', { text })).body.data.items).not.toEqual([])
  expect((await ok('POST', '/v1/stacks/companies/search', { text: 'engin' })).body.data.items).toHaveLength(1)
  for (const [text, owners] of [
    ['wilhelmna', ['people', 'companies']],
    ['engin', ['companies', 'people']],
    ['words', ['visits', 'companies']],
  ])
    expect((await ok('POST', '/v1/search', { text, owners })).body.data.items).not.toEqual([])
  // All words are frequent.
  for (const frequent of [0, 1_000])
    for (const text of ['wilhelmina w1', 'wil w'])
      await service.db.transaction(tx => {
        const searched = { organization_id: id, stacks: [{ stack_id: 0, text: parseSearchText(text, 0, null) }] }
        return findPlaces(tx, searched, undefined, 10, { rare: 0, frequent })
      })
  await ok('PATCH', '/v1/people/w1', { first_name: 'Augusta' })
  await ok('DELETE', '/v1/people/w2')
  await ok('PATCH', `/v1/schema/attributes/${attribute.id}`, { searchable: false })
  await index()
}

/** Reaches a person by an alias, by the name of a merged person and by a merged identifier. The twin has the same ones. */
async function useAliases({ send }: Shop) {
  const ok = (method: string, path: string, body?: unknown) => expectSuccess(send(method, path, body))
  const purpose = { consent_type_id: 1, channel: 'email' }
  const at = new Date().toISOString()
  for (const address of ['nickname', 'merged', `internal/${merged}`]) {
    const path = `/v1/people/${address}`
    expect((await ok('GET', path)).body.data.id).toBe(nick)
    await ok('GET', `${path}?at=${at}`)
    await ok('PATCH', path, { first_name: address, attribute_values: { referrer: 'merged' } })
    await ok('POST', `${path}/related`, { target: 'people' })
    await ok('POST', `${path}/contactable`, purpose)
    await ok('POST', `${path}/contactable`, { ...purpose, at })
  }
  for (const filter of [{ external_id: 'merged' }, { 'attribute_values.referrer': 'nickname' }])
    expect((await ok('POST', '/v1/people/filter', { filter })).body.data.items).toHaveLength(1)
  const { refused } = await importLines(
    { send },
    '/v1/people/import',
    linesFrom([{ external_id: 'merged' }, { external_id: 'nick' }]),
  )
  expect(refused).toEqual([])
  await ok('PATCH', `/v1/people/internal/${merged}`, { external_id: 'nickname' })
}

/** Merges people with links, aliases and answers, links to a merged one, and undoes the merges one after the other. */
async function mergePeople({ send, id }: Shop) {
  const ok = (path: string, body: object) => expectSuccess(send('POST', `/v1/people${path}`, body))
  const answer = (day: number) => ({
    consents: [{ consent_type_id: 1, channel: 'email', state: false, collected_at: `2020-01-0${day}T00:00:00Z` }],
  })
  await ok('', { external_id: 'merge-0', attribute_values: { friends: ['merge-1'] } })
  await ok('', {
    external_id: 'merge-1',
    email: 'merge@example.com',
    attribute_values: { referrer: 'eve' },
    ...answer(5),
  })
  await ok('', { external_id: 'merge-2', ...answer(3) })
  await ok('', { external_id: 'merge-3' })
  await ok('', { external_id: 'merge-fan', attribute_values: { friends: ['merge-0', 'merge-1'], referrer: 'merge-1' } })
  await ok('/merge-1/merge', { from: 'merge-3', dry_run: true })
  await ok('/merge-1/merge', { from: 'merge-3' })
  for (const from of ['merge-1', 'merge-2']) await ok('/merge-0/merge', { from })
  // As if they had more links than one transaction moves.
  await service.sql('update merges set moving = array[merged_id] where organization_id = $1', [id])
  await completeMerges(service.db)
  await ok('/upsert', { external_id: 'merge-fan', attribute_values: { referrer: 'merge-2' } })
  for (const path of ['consents/history', 'consents/history?before_version=9', 'history'])
    await expectSuccess(send('GET', `/v1/people/merge-0/${path}`))
  await ok('/merge-0/contactable', { consent_type_id: 1, channel: 'email', at: new Date().toISOString() })
  for (const from of ['merge-1', 'merge-2']) await ok('/merge-0/unmerge', { from })
  await ok('/merge-1/unmerge', { from: 'merge-3' })
}

/** Seals and audits the ledger, whose answers are read from the change log again and again. */
async function useLedger(shop: Shop) {
  const ok = (path: string) => expectSuccess(shop.send('GET', `/v1/ledger/${path}`))
  for (let batch = 0; batch < 3; batch++) {
    const create = (n: number) => ({ op: 'create', body: { external_id: `answered${batch}:${n}`, consents } })
    const operations = Array.from({ length: 100 }, (_, n) => create(n))
    const { items } = (await expectSuccess(shop.send('POST', '/v1/people/batch', { operations }))).body.data
    expect(items.every(({ status }: { status: number }) => status === 201)).toBe(true)
  }
  await nameText(shop, 'answered0:0')
  // The ledger of the twin is not watched.
  const follower = ledgerFollower({ originName: 'kith' })
  const work: Follower['work'] = async task =>
    task.organization_id === shop.id ? follower.work(task) : { sequence: task.head }
  const followLater = (hours: number) =>
    follow(service.db, [{ ...follower, work, maxConcurrent: 1 }], { nowMs: () => Date.now() + hours * 3_600_000 })
  await followLater(1)
  await service.sql(`insert into followers (organization_id, name) values ($1, 'address_answers')`, [shop.id])
  await follow(service.db, [addressAnswersFollower()])
  // There is news, and nothing to seal.
  await expectSuccess(shop.send('POST', '/v1/people', { external_id: 'unanswered' }))
  await followLater(2)
  for (const path of ['checkpoint', 'keys', 'tile/0/000', 'tile/entries/000', 'inclusion/3', 'consistency/3'])
    await ok(path)
  const { size, findings } = await auditLedger(contextOf(service.db, shop.id))
  expect([size > 300, findings]).toEqual([true, []])
  await readReceipts(shop, 'answered0:0')
  await service.sql('update ledger_entries set salt = null where organization_id = $1 and index = 3', [shop.id])
  expect((await auditLedger(contextOf(service.db, shop.id))).findings).toHaveLength(1)
  const { sequence, consent_type_id, channel } = (
    await service.sql<Pick<StoredEntry, 'sequence' | 'consent_type_id' | 'channel'>>(
      'select * from ledger_entries where organization_id = $1 and index = 3',
      [shop.id],
    )
  )[0]!
  expect(await findEntry(contextOf(service.db, shop.id), { sequence, consent_type_id, channel })).toMatchObject({
    index: 3,
  })
}

/** Makes links with the key that the twin has too, and with a new one, and submits their pages. */
async function useLinks(shop: Shop) {
  const { send, id } = shop
  await expectSuccess(send('GET', '/v1/schema/settings'))
  await expectSuccess(send('POST', '/v1/schema/consent-types/1/texts', { language: 'en', text: 'I agree.' }))
  await expectSuccess(send('PATCH', '/v1/schema/settings', { display_name: 'Our shop' }))
  const { body } = await expectSuccess(send('GET', '/v1/people/bob'))
  for (const path of ['bob', `internal/${body.data.id}`]) {
    const reply = await expectSuccess(send('POST', `/v1/people/${path}/consent-links`, { consent_type_id: 1 }))
    const { preferences_url, unsubscribe_url } = reply.body.data
    const page = await requestPage(preferences_url)
    for (const form of [formOf(page), { shown: formOf(page).shown }]) await requestPage(preferences_url, { form })
    const { status } = await requestPage(unsubscribe_url, { method: 'POST' })
    expect([page.status, status]).toEqual([200, 200])
    await service.sql('delete from link_keys where organization_id = $1', [id])
  }
}

/** Names the text that a person answered to, before the answer is sealed. */
async function nameText({ id }: Shop, external_id: string) {
  await service.sql(
    `insert into consent_texts (organization_id, consent_type_id, version, language, text, sha256, created_at)
     values ($1, 1, 1, 'en', 'Yes.', sha256('Yes.'), now()) on conflict do nothing`,
    [id],
  )
  await service.sql(
    `update consent_history set evidence = '{"text_version": 1}' where organization_id = $1 and person_id =
       (select id from entities where organization_id = $1 and stack_id = 0 and external_id = $2)`,
    [id, external_id],
  )
}

async function readReceipts({ send }: Shop, external_id: string) {
  const { id } = (await expectSuccess(send('GET', `/v1/people/${external_id}`))).body.data
  for (const address of [external_id, `internal/${id}`]) {
    const reply = await expectSuccess(send('GET', `/v1/people/${address}/consents/1/email/receipt`))
    expect(reply.body.data.entry).toMatchObject({ person_id: id, text_version: 1 })
  }
}

async function useWebhooks({ send }: Shop) {
  const ok = (method: string, path: string, body?: unknown) => expectSuccess(send(method, `/v1/webhooks${path}`, body))
  const events = ['person.*', 'record.*', 'consent.*']
  await ok('POST', '', { url: receiver.url, events, keys: ['email', 'attribute_values.city'], stacks: ['companies'] })
  receiver.answer = response => response.writeHead(204).end()
  await deliver()
  const { position } = (await ok('GET', '/1')).body.data
  await ok('POST', '/1/replay', { after: position - 3 })
  await deliver()
  receiver.answer = response => response.writeHead(410).end()
  await expectSuccess(send('POST', '/v1/people', { external_id: 'told again' }))
  await deliver()
  await ok('PATCH', '/1', { active: true, headers: { Authorization: 'Bearer x' }, keys: null, links: true })
  receiver.answer = response => response.writeHead(204).end()
  await awaitConfirmation(shop)
  await ok('GET', '')
  await ok('GET', '/1/deliveries')
  await ok('POST', '/1/rotate')
  await ok('POST', '/1/test')
  await ok('DELETE', '/2')
  await forgetDeliveries(service.db)
}

/** Sends the event of a grant that waits for its confirmation. */
async function awaitConfirmation({ send }: Shop) {
  const askToConfirm = (double_opt_in: boolean) => {
    const channels = ['email', 'sms'].map(channel => ({ channel, is_default: true, double_opt_in }))
    return expectSuccess(send('PATCH', '/v1/schema/consent-types/1', { channels }))
  }
  await askToConfirm(true)
  const consents = [{ consent_type_id: 1, channel: 'email', state: true }]
  await expectSuccess(send('POST', '/v1/people', { external_id: 'to confirm', email: 'new@example.com', consents }))
  await deliver()
  expect(receiver.received.some(({ event }) => event.confirmations)).toBe(true)
  await askToConfirm(false)
}

/** Runs a follower that keeps its lease for a while and then fails, woken by a commit. */
async function followLog({ id }: Shop) {
  const { promise: failed, resolve } = Promise.withResolvers<void>()
  const follower: Follower = {
    name: 'tests',
    isForEveryOrganization: true,
    maxConcurrent: 10,
    work: async ({ db, organization_id, head, hold, advance }) => {
      if (organization_id !== id) return { sequence: head }
      await db.transaction(tx => hold(tx))
      await db.transaction(tx => advance(tx, head))
      await service.db.query(
        statement('', `update followers set sequence = 0 where organization_id = $1 and name = 'tests'`),
        [id],
      )
      await renewed
      throw new Error('the follower fails')
    },
  }
  const { promise: renewed, resolve: onRenewed } = Promise.withResolvers<void>()
  const { query } = service.db
  service.db.query = (statement, values, signal) =>
    query(statement, values, signal).finally(() => {
      if (statement.name === 'renew_lease') onRenewed()
      if (statement.name === 'record_follower_failure') resolve()
    }) as never
  const following = createFollowers(service.db, [follower], { report: () => {}, leaseMs: 3_000, tickMs: 1_000_000 })
  following.start()
  announceCommit(contextOf(service.db, id))
  await failed
  await following.stop()
  service.db.query = query
}

/** Names the country of stored numbers without a prefix, also of a merged person, and computes their keys. The twin names none. */
async function nameCountry({ send }: Shop) {
  for (const [external_id, mobile_number] of [
    ['local', '333 7654321'],
    ['local too', '333 7654322'],
  ])
    await expectSuccess(send('POST', '/v1/people', { external_id, mobile_number }))
  await expectSuccess(send('POST', '/v1/people/local/merge', { from: 'local too' }))
  await expectSuccess(send('PATCH', '/v1/schema/settings', { default_country: 'IT' }))
  await backfillIndexes(service.db)
}

/** Erases people with all that they have, brings them back, and finds them again. The twin has the same people. */
async function useErasures(shop: Shop) {
  const { send, id } = shop
  const ok = (method: string, path: string, body?: unknown, headers = {}) =>
    expectSuccess(send(method, path, body, headers))
  const context = { ...contextOf(service.db, id), originName: 'kith' }
  const named = async (external_id: string) => (await ok('GET', `/v1/people/${external_id}`)).body.data.id as string
  const reason = 'Request of the person'
  await ok('POST', '/v1/schema/notes')
  await ok('POST', '/v1/people/bob/erase', { reason, records: 'linked', dry_run: true })
  await ok('POST', `/v1/people/internal/${await named('bob')}/erase`, { reason, records: 'linked' })
  for (const _ of [1, 2]) await ok('POST', '/v1/people/gone/erase', { reason })
  const request = { person_id: await named('eve'), reason, records: 'keep' as const, actor: 'tests', request_id: 'r' }
  for (const external_id of ['quoter-1', 'quoter-2'])
    await ok('POST', '/v1/people', { external_id, attribute_values: { friends: ['eve'] } })
  // The log of this person is longer than one transaction takes, and more others link to it.
  await erasePerson({ ...context, maxChanges: 0, maxLinks: 1 }, request)
  await completeErasures(service.db, 'kith')
  await ok('GET', '/v1/erasures')
  await ok('POST', '/v1/people/contactable', { consent_type_id: 1, channel: 'email', external_ids: ['eve'] })
  expect((await send('POST', '/v1/people', { external_id: 'eve' })).body.reason).toBe('erased')
  await ok('POST', '/v1/people', { external_id: 'eve' }, { Prefer: 'erased=recreate' })
  const refused = { external_id: 'refused', email: 'refused@example.com', email_consent: false }
  await ok('POST', '/v1/people', refused)
  await ok('POST', '/v1/people/refused/erase', { reason })
  await ok('POST', '/v1/people', refused, { Prefer: 'erased=recreate' })
  // A restore of a person reads the erasures before the deletion.
  const eve = await named('eve')
  await ok('DELETE', '/v1/people/eve')
  await ok('POST', `/v1/people/internal/${eve}/restore`)
  await applyErasures(context, [])
}

/** Reads the change log in every form, and waits for changes of which none matches. */
async function readLog({ send, id }: Shop, person: string) {
  const ok = (path: string, Accept = 'application/json') => expectSuccess(send('GET', path, undefined, { Accept }))
  const { head } = (await ok('/v1/changes?limit=1000&stack=companies')).body.data
  await ok('/v1/changes', 'application/x-ndjson')
  await ok(`/v1/changes?after=${head}&wait=1`)
  await ok(`/v1/people/internal/${person}/history`)
  await ok('/v1/stacks/companies/acme/history')
  await readConsents(shop, person)
  await renewLogId(contextOf(service.db, id))
}

/** Reads consent histories and asks for decisions, also about a person who was deleted, and as at a past time. */
async function readConsents({ send }: Shop, person: string) {
  const purpose = { consent_type_id: 1, channel: 'email' }
  const at = new Date().toISOString()
  for (const address of ['/v1/people/bob', '/v1/people/gone', `/v1/people/internal/${person}`]) {
    await expectSuccess(send('GET', `${address}/consents/history`))
    await expectSuccess(send('POST', `${address}/contactable`, purpose))
    await expectSuccess(send('POST', `${address}/contactable`, { ...purpose, at }))
  }
  await expectSuccess(send('POST', '/v1/people/contactable', { ...purpose, external_ids: ['bob', 'gone', 'nobody'] }))
  for (const address of ['/v1/people/bob', `/v1/people/internal/${person}`])
    await expectSuccess(send('GET', `${address}/consents`))
}

const filters = (id: string) => [
  {},
  { id },
  { external_id: { $in: ['ada2', 'bob'] } },
  { email: person.email },
  { 'attribute_values.city': 'Rome' },
  { 'attribute_values.city': { $gte: 'A' }, 'attribute_values.late': { $contains: 'X' } },
  { 'attribute_values.referrer': 'born' },
  { 'attribute_values.friends': { $some: { 'attribute_values.city': { $exists: true } } } },
  { 'attribute_values.employer': { $none: { 'attribute_values.founder': { $every: { state: 'active' } } } } },
  { consents: { $some: { consent_type_id: 1, state: true } } },
  { consents: { $some: { text_version: { $gte: 1 }, method: null, answered_at: { $gt: '2020-06-01T00:00:00Z' } } } },
  { $not: { state: 'placeholder' }, created_at: { $gt: '2020-01-01T00:00:00Z' } },
]

async function changeDefinitions(send: Shop['send']) {
  const ok = (method: string, path: string, body: unknown) => expectSuccess(send(method, `/v1/schema/${path}`, body))
  await ok('POST', 'stacks', { key: 'made', kind: 'item' })
  await ok('PATCH', 'stacks/made', { name: 'Made' })
  await ok('POST', 'consent-types', { key: 'made', channels: [{ channel: 'email', is_default: true }] })
  await ok('PATCH', 'consent-types/2', { state: 'archived' })
  await ok('POST', 'consent-types/1/texts', { language: 'en', text: 'Yes, please.' })
  await ok('POST', 'attributes', { key: 'made', owner: 'made', type: 'date' })
  await ok('POST', 'attributes/batch', { items: [{ key: 'also_made', owner: 'made', type: 'date' }] })
  // A person carries one of the keys.
  const unique = ['a', 'nobody_has_it'].map(key => ({
    key,
    owner: 'people',
    type: 'text',
    indexed: true,
    unique: true,
  }))
  expect((await send('POST', '/v1/schema/attributes/batch', { items: unique })).status).toBe(409)
  await ok('PATCH', 'attributes/5', { indexed: true })
  for (const path of [
    'stacks',
    'attributes',
    'consent-types',
    'stacks/made',
    'attributes/5',
    'consent-types/1',
    'consent-types/1/texts',
  ])
    await expectSuccess(send('GET', `/v1/schema/${path}`))
  await expectSuccess(send('GET', '/v1/schema'))
  await expectSuccess(send('GET', '/v1/organization'))
}

/** Wraps the secrets of the organization, and loses the master key. Those of the service itself stay as they are. */
async function loseMasterKey({ send }: Shop) {
  const ok = (method: string, path: string, body: unknown) => expectSuccess(send(method, path, body))
  await ok('POST', '/v1/webhooks', { url: receiver.url, events: ['person.*'], headers: { authorization: 'x' } })
  await ok('POST', '/v1/deliverability/sources', { key: 'lost', provider: 'postmark' })
  await ok('POST', '/v1/people/ada2/consent-links', {})
  for (const forgetsLost of [false, true]) {
    const key = masterKeyOf(randomBytes(32))!
    const query: typeof service.db.query = async (given, values) =>
      /^find_wrapped_(signing|ledger)_keys$/.test(given.name) ? [] : service.db.query(given, values)
    const { wrapped, lost } = await rewrapAll(
      { ...service.db, query, masterKeys: createMasterKeys(() => [key]) },
      { forgetsLost },
    )
    expect(Object.keys(forgetsLost ? lost : wrapped)).toEqual(['link_keys', 'webhooks', 'deliverability_sources'])
  }
}

/** Makes, renews and drops views for SQL. */
async function useSqlViews({ id, send }: Shop) {
  const views = { organization_id: id, schema_name: `twin_${process.pid}` }
  await createViews(service.db, { ...views, login: views.schema_name, password: 'not-a-secret' })
  await expectSuccess(send('POST', '/v1/schema/stacks', { key: 'seen', kind: 'item' }))
  await renewViews(service.db, views)
  await dropRetired(service.db, views)
  await dropAllViews(service.db, shop.key)
}

/** Deletes the organization as `kith org delete` does, a minute after its tokens were refused. */
async function deleteShop() {
  await service.sql(`update organizations set deleted_at = now() - interval '1 minute' where id = $1`, [shop.id])
  await deleteOrganization(service.db, shop.key)
}

it('limits every statement to its organization when another has identical rows and identifiers', {
  timeout: 300_000,
}, async () => {
  const watch = watchTwin(service.db, tables, shop.id, twin.id)
  await useEveryEndpoint(shop)
    .then(() => useSqlViews(shop))
    .then(() => loseMasterKey(shop))
    .then(deleteShop)
    .finally(watch.release)
  const names = await listStatementNames()
  const executions = [...watch.executions.values()].reduce((sum, count) => sum + count, 0)
  console.log(
    `twins: ${watch.executions.size} statements ran ${executions} times next to identical data in ${tables.length} tables`,
  )
  expect(watch.leaks).toEqual([])
  expect(
    names.filter(name => !watch.executions.has(name) && ![...globalStatements, ...exportStatements].includes(name)),
  ).toEqual([])
})

it('reports a statement that does not filter by organization', async () => {
  const leakyStatements = [
    { name: 'forgetful_read', text: 'select id from entities where $1::integer is not null and external_id = $2' },
    {
      name: 'forgetful_write',
      text: 'update entities set version = version + 1 where $1::integer is not null and external_id = $2',
    },
  ]
  const watch = watchTwin(service.db, tables, shop.id, twin.id)
  for (const leaky of leakyStatements) await service.db.query(leaky, [shop.id, 'bob'])
  watch.release()
  expect(watch.leaks).toEqual(['forgetful_read read the twin', 'forgetful_write changed the twin'])
})
