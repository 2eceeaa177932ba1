import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { startSealing } from '../../test/support/ledger.ts'
import { ndjsonHeaders } from '../../test/support/lines.ts'
import { followSegments } from '../../test/support/segments.ts'
import { useOwnService } from '../../test/support/service.ts'
import { type Shop, useSharedShop } from '../../test/support/shop.ts'
import { searchFollower } from '../entities/indexes/search-index.ts'
import { jobsFollower } from '../jobs/run-jobs.ts'
import { routeTable } from '../process/app.ts'
import { loadConfig } from '../process/config.ts'
import type { AccessEntry } from './schema.ts'

const service = useOwnService({ KITH_ACCESS_LOG: 'strict' })

/** The operations that neither show nor write a person or a record. */
const showsNone = new Set([
  // These show numbers, and groups of values.
  ...['aggregatePeople', 'aggregateRecords', 'countConsents', 'listObservedKeys', 'listRetentionRuns'],
  // These concern definitions and their parts.
  ...['createStack', 'listStacks', 'getStack', 'patchStack', 'createAttribute', 'batchAttributes', 'listAttributes'],
  ...[
    'getAttribute',
    'patchAttribute',
    'declareObservedKey',
    'ensureNotes',
    'createConsentType',
    'listConsentTypes',
    'getConsentType',
  ],
  ...['patchConsentType', 'addConsentText', 'getConsentText', 'listConsentTexts', 'getSchema', 'getOrganization'],
  ...['getSettings', 'patchSettings', 'createSegment', 'listSegments', 'getSegment', 'patchSegment', 'deleteSegment'],
  ...['createRetentionRule', 'listRetentionRules', 'getRetentionRule', 'patchRetentionRule', 'deleteRetentionRule'],
  ...['createDeliverabilitySource', 'listDeliverabilitySources', 'deleteDeliverabilitySource', 'listImports'],
  ...['listImportMappings', 'saveImportMapping', 'forgetImportMapping'],
  ...['listJobs', 'getJob', 'cancelJob'],
  // These concern webhooks and their deliveries, which refer to changes by number.
  ...['createWebhook', 'listWebhooks', 'getWebhook', 'patchWebhook', 'deleteWebhook', 'rotateWebhookSecret'],
  ...['testWebhook', 'replayWebhook', 'listWebhookDeliveries'],
  // These show salted hashes and their proofs.
  ...['getCheckpoint', 'getTile', 'listLedgerKeys', 'proveInclusion', 'proveConsistency'],
  // This shows the internal identifiers of erased people.
  'listErasures',
  // This ends a set-aside that setPeopleAside showed, and its request needs an id from that response.
  'takeBackSetAside',
  // These concern callers, and the log itself.
  ...['listAccounts', 'createAccount', 'updateAccount', 'removeAccount', 'inviteAccount'],
  ...['listClients', 'createClient', 'getClient', 'revokeClient', 'createToken', 'listTokens', 'revokeToken'],
  ...['listKeys', 'listSessions', 'revokeSession', 'listAccesses', 'listPersonAccesses', 'listPersonAccessesById'],
  ...['createRole', 'listRoles', 'getRole', 'patchRole', 'getDoctorReport', 'getOperationsMetrics'],
])

const setAside = '/v1/people/duplicates/set-aside'

type Request = [method: string, path: string, body?: unknown, headers?: Record<string, string>]
type Prepared = { shop: Shop; name: string; id: string; other: string; record: string; record_id: string }

const grant = { consent_type_id: 1, channel: 'email' }
const email = (name: string) => `${name}@example.com`

/**
 * The requests for the prepared entities, by operation without `ById`. If there are several, the last one is tested.
 * `JOBS` runs the jobs.
 */
const requests: Record<string, (prepared: Prepared & { person: string; ofRecord: string }) => Request[]> = {
  createPerson: ({ name }) => [['POST', '/v1/people', { external_id: `${name}-new` }]],
  upsertPerson: ({ name }) => [['POST', '/v1/people/upsert', { external_id: name, first_name: 'Ada' }]],
  batchPeople: ({ name }) => [
    ['POST', '/v1/people/batch', { operations: [{ op: 'patch', external_id: name, body: { first_name: 'Ada' } }] }],
  ],
  getPerson: ({ person }) => [['GET', person]],
  replacePerson: ({ person }) => [['PUT', person, { first_name: 'Ada' }]],
  patchPerson: ({ person }) => [['PATCH', person, { first_name: 'Ada' }]],
  deletePerson: ({ person }) => [['DELETE', person]],
  restorePerson: ({ id }) => [
    ['DELETE', `/v1/people/internal/${id}`],
    ['POST', `/v1/people/internal/${id}/restore`],
  ],
  listPeople: () => [['POST', '/v1/people/list', {}]],
  filterPeople: ({ name }) => [['POST', '/v1/people/filter', { filter: { external_id: name } }]],
  listPersonRelated: ({ person }) => [['POST', `${person}/related`, { target: 'orders' }]],
  lookUpPeople: ({ name }) => [['POST', '/v1/people/lookup', { external_id: name }]],
  getPeople: ({ name }) => [['POST', '/v1/people/get', { external_ids: [name] }]],
  searchPeople: ({ name }) => [['POST', '/v1/people/search', { text: name }]],
  search: ({ name }) => [['POST', '/v1/search', { text: name }]],
  mergePeople: ({ person, other }) => [['POST', `${person}/merge`, { from: other }]],
  unmergePeople: ({ person, other }) => [
    ['POST', `${person}/merge`, { from: other }],
    ['POST', `${person}/unmerge`, { from: other }],
  ],
  importPeople: ({ name }) => [
    ['POST', '/v1/people/import', `{"external_id":"${name}","first_name":"A"}\n`, ndjsonHeaders],
  ],
  exportPeople: () => [['POST', '/v1/people/export', {}]],
  listPersonHistory: ({ person }) => [['GET', `${person}/history`]],
  decideContacts: ({ name }) => [['POST', '/v1/people/contactable', { ...grant, external_ids: [name] }]],
  listConsents: ({ person }) => [['GET', `${person}/consents`]],
  listConsentHistory: ({ person }) => [['GET', `${person}/consents/history`]],
  decideContact: ({ person }) => [['POST', `${person}/contactable`, grant]],
  getConsentReceipt: ({ person }) => [['GET', `${person}/consents/1/email/receipt`]],
  getDossier: ({ person }) => [['GET', `${person}/dossier`]],
  findDuplicates: () => [['POST', '/v1/people/duplicates', {}]],
  findDuplicatesOf: ({ person }) => [['GET', `${person}/duplicates`]],
  setPeopleAside: ({ name, other }) => [['POST', setAside, { external_ids: [name, other] }]],
  listSetAsides: ({ name, other }) => [
    ['POST', setAside, { external_ids: [name, other] }],
    ['GET', setAside],
  ],
  erasePerson: ({ person }) => [['POST', `${person}/erase`, { reason: 'asked' }]],
  previewRetentionRule: () => [['GET', '/v1/retention-rules/1/preview']],
  holdPerson: ({ person }) => [['POST', `${person}/hold`, { reason: 'court' }]],
  releasePerson: ({ person }) => [
    ['POST', `${person}/hold`, { reason: 'court' }],
    ['DELETE', `${person}/hold`],
  ],
  listHolds: ({ person }) => [
    ['POST', `${person}/hold`, { reason: 'court' }],
    ['GET', '/v1/holds'],
  ],
  createConsentLinks: ({ person }) => [['POST', `${person}/consent-links`, { channel: 'email' }]],
  createRecord: ({ record }) => [['POST', '/v1/stacks/orders', { external_id: `${record}-new` }]],
  upsertRecord: ({ record }) => [['POST', '/v1/stacks/orders/upsert', { external_id: record }]],
  batchRecords: ({ record }) => [
    ['POST', '/v1/stacks/orders/batch', { operations: [{ op: 'delete', external_id: record }] }],
  ],
  getRecord: ({ ofRecord }) => [['GET', ofRecord]],
  replaceRecord: ({ ofRecord }) => [['PUT', ofRecord, { attribute_values: { code: 'x' } }]],
  patchRecord: ({ ofRecord }) => [['PATCH', ofRecord, { attribute_values: { code: 'y' } }]],
  deleteRecord: ({ ofRecord }) => [['DELETE', ofRecord]],
  restoreRecord: ({ record_id }) => [
    ['DELETE', `/v1/stacks/orders/internal/${record_id}`],
    ['POST', `/v1/stacks/orders/internal/${record_id}/restore`],
  ],
  listRecords: () => [['POST', '/v1/stacks/orders/list', {}]],
  filterRecords: ({ record }) => [['POST', '/v1/stacks/orders/filter', { filter: { external_id: record } }]],
  listRecordRelated: ({ ofRecord }) => [['POST', `${ofRecord}/related`, { target: 'people' }]],
  getRecords: ({ record }) => [['POST', '/v1/stacks/orders/get', { external_ids: [record] }]],
  searchRecords: ({ record }) => [['POST', '/v1/stacks/orders/search', { text: record }]],
  importRecords: ({ record }) => [['POST', '/v1/stacks/orders/import', `{"external_id":"${record}"}\n`, ndjsonHeaders]],
  exportRecords: () => [['POST', '/v1/stacks/orders/export', {}]],
  listRecordHistory: ({ ofRecord }) => [['GET', `${ofRecord}/history`]],
  recordDeliveryEvents: ({ name }) => [
    ['POST', '/v1/deliverability', { events: [{ channel: 'email', address: email(name), type: 'hard_bounce' }] }],
  ],
  listSuppressedAddresses: args => [...requests.recordDeliveryEvents!(args), ['GET', '/v1/deliverability']],
  exportDeliveryEvents: args => [...requests.recordDeliveryEvents!(args), ['GET', '/v1/deliverability/events']],
  liftSuppression: args => [
    ...requests.recordDeliveryEvents!(args),
    ['DELETE', `/v1/deliverability/email/${encodeURIComponent(email(args.name))}`],
  ],
  getPersonDeliverability: ({ person }) => [['GET', `${person}/deliverability`]],
  listAttributeViolations: () => [['GET', '/v1/schema/attributes/2/violations?minimum=10']],
  listSegmentPeople: () => [['GET', '/v1/segments/everybody/people']],
  listSegmentMembers: () => [['GET', '/v1/segments/everybody/members']],
  listChanges: () => [['GET', '/v1/changes']],
  changePeopleInBulk: ({ id }) => [['POST', '/v1/people/bulk', { ids: [id], change: { op: 'delete' } }]],
  changeRecordsInBulk: ({ record_id }) => [
    ['POST', '/v1/stacks/orders/bulk', { ids: [record_id], change: { op: 'delete' } }],
  ],
  listRefusedOfJob: ({ id, name }) => [
    ['POST', `/v1/people/internal/${id}/hold`, { reason: 'court' }],
    [
      ...(['POST', '/v1/people/bulk', { ids: [id], change: { op: 'erase', reason: 'asked' } }] as const),
      { 'X-Request-Id': `${name}-job` },
    ],
    ['JOBS', ''],
    ['GET', `/v1/jobs/${name}-job/refused`],
  ],
  undoJob: ({ id, name }) => [
    ['POST', '/v1/people/bulk', { ids: [id], change: { op: 'delete' } }, { 'X-Request-Id': `${name}-job` }],
    ['JOBS', ''],
    ['POST', `/v1/jobs/${name}-job/undo`, {}],
  ],
  undoImport: ({ name }) => [
    ['POST', '/v1/people/import', `{"external_id":"${name}-imported"}\n`, { ...ndjsonHeaders, 'X-Request-Id': name }],
    ['POST', `/v1/imports/${name}/undo`, {}],
  ],
}

let prepared = 0

/** Prepares a person with an email, a consent answer and a duplicate, and a record that the person bought. */
async function prepare(shop: Shop): Promise<Prepared> {
  const name = `ada${++prepared}`
  const record = `order${prepared}`
  const { record_id } = await shop.ok('POST', '/v1/stacks/orders', {
    external_id: record,
    attribute_values: { code: record, total: 1 },
  })
  const profile = { email: email(name), attribute_values: { bought: [record] } }
  const { id } = await shop.ok('POST', '/v1/people', {
    external_id: name,
    ...profile,
    consents: [{ ...grant, state: true }],
  })
  const other = `${name}-other`
  await shop.ok('POST', '/v1/people', { external_id: other, email: email(name) })
  return { shop, name, id, other, record, record_id }
}

/**
 * Runs the followers, which index words and compute the segment, and sets the entries of its members to a time long
 * ago.
 */
async function work(shop: Shop) {
  await follow(service.db, [searchFollower()])
  await followSegments(service)
  const past = `now() - interval '10 days'`
  await service.sql(`update segments set filter_changed_at = ${past} where organization_id = $1`, [shop.id])
  // A change of one definition makes the service read all of them again.
  await shop.ok('PATCH', '/v1/segments/everybody', { name: `Everybody, ${prepared}` })
  await service.sql(`update segment_members set entered_at = ${past} where organization_id = $1`, [shop.id])
}

const runJobs = () =>
  follow(service.db, [jobsFollower({ originName: 'kith.test', limits: service.config.limits, pausePerWork: 0 })])

const rows = routeTable({ config: loadConfig({}) })

it('knows of each row whether it shows or writes people or records', () => {
  const known = (operationId: string) => showsNone.has(operationId) || operationId.replace(/ById$/, '') in requests
  expect(rows.map(({ operationId }) => operationId).filter(operationId => !known(operationId))).toEqual([])
  expect([...showsNone].filter(name => !rows.some(({ operationId }) => operationId === name))).toEqual([])
})

describe('each row that shows or writes a person or a record', () => {
  const shop = useSharedShop(
    service,
    { key: 'orders', kind: 'item' },
    { key: 'code', owner: 'orders', type: 'text', searchable: true },
    { key: 'total', owner: 'orders', type: 'number' },
    'bought',
    { key: 'news', name: 'News', channels: [{ channel: 'email', default: true }] } as never,
  )
  let stopSealing: () => Promise<void>
  afterAll(() => stopSealing())
  beforeAll(async () => {
    stopSealing = startSealing(service)
    await shop.ok('POST', '/v1/segments', { key: 'everybody', name: 'Everybody', filter: {} })
    await shop.ok('POST', '/v1/retention-rules', { segment: 'everybody', after_days: 1, action: 'delete' })
  })

  it.each(rows.filter(({ operationId }) => !showsNone.has(operationId)))('is in the log: $operationId', async row => {
    const isById = row.operationId.endsWith('ById')
    const made = await prepare(shop)
    await work(shop)
    const person = isById ? `/v1/people/internal/${made.id}` : `/v1/people/${made.name}`
    const ofRecord = isById ? `/v1/stacks/orders/internal/${made.record_id}` : `/v1/stacks/orders/${made.record}`
    const sent = requests[row.operationId.replace(/ById$/, '')]!({ ...made, person, ofRecord })
    let request_id = ''
    for (const [index, [method, path, body, headers]] of sent.entries()) {
      if (method === 'JOBS') {
        await runJobs()
        continue
      }
      request_id = headers?.['X-Request-Id'] ?? `${made.name}-${index}`
      const { status, body: reply } = await shop.send(method, path, body, { ...headers, 'X-Request-Id': request_id })
      expect([status, reply]).toEqual([expect.toSatisfy(given => given < 300), reply])
    }
    const { items } = await shop.ok('GET', '/v1/access-log?kind=access&limit=500')
    const own = items.filter((entry: AccessEntry) => entry.request_id === request_id && entry.route === row.path)
    expect(own).not.toEqual([])
    const listsNone = /^(erase|listSuppressed|exportDelivery)/.test(row.operationId)
    for (const { ids, count } of own as AccessEntry[]) {
      expect(count).toBeGreaterThan(0)
      expect(ids.length > 0).toBe(!listsNone)
    }
  })
})
