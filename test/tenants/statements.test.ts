import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient, listClients, revokeClient, verifyClient } from '../../src/auth/clients.ts'
import type { Statement } from '../../src/db/db.ts'
import { cleanDanglingLinks } from '../../src/entities/dangling-link-cleanup.ts'
import { backfillIndexes } from '../../src/entities/index-backfill.ts'
import { forgetKeys } from '../../src/idempotency/forget.ts'
import { exportAll, importLines, linesFrom } from '../support/lines.ts'
import { type Reply, type Service, startService } from '../support/service.ts'
import { makeShop, type Shop } from '../support/writes.ts'
import { copyRows, tablesOf, watchTwin } from './twins.ts'

let service: Service
let shop: Shop
let twin: Shop
let tables: string[]
beforeAll(async () => {
  service = await startService()
  // The shares of organizations would run their statements past whoever watches the database.
  service.db.shareOf = () => service.db
  tables = await tablesOf(service)
  shop = await makeShop(service)
  twin = await makeShop(service)
  const { send } = shop
  await done(send('POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' }))
  for (const body of [
    { owner: 'people', key: 'city', type: 'text', indexed: true },
    { owner: 'people', key: 'late', type: 'text' },
    { owner: 'companies', key: 'founder', type: 'person' },
  ])
    await done(send('POST', '/v1/schema/attributes', body))
  for (const external_id of ['ada', 'bob', 'eve', 'gone'])
    await done(
      send('POST', '/v1/people', {
        ...person,
        external_id,
        attribute_values: { ...person.attribute_values, referrer: 'gone' },
      }),
    )
  // A page that has it is read in portions.
  const large = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(key => [key, 'x'.repeat(60_000)]))
  await done(send('POST', '/v1/people', { external_id: 'large', attribute_values: large }))
  await done(send('POST', '/v1/stacks/companies', { external_id: 'acme', attribute_values: { founder: 'ada' } }))
  await done(send('POST', '/v1/stacks/visits', { external_id: 'v1', attribute_values: { page: '/' } }))
  await done(send('POST', '/v1/people', { external_id: 'forgotten' }, { 'Idempotency-Key': 'old' }))
  await service.sql(`update idempotency_keys set at = at - interval '2 days' where organization_id = $1`, [shop.id])
  await copyRows(service, tables, shop.id, twin.id)
})
afterAll(() => service.stop())

const person = {
  email: 'ada@example.com',
  consents: [{ consent_type_id: 1, channel: 'email', state: true }],
  attribute_values: { city: 'Rome', late: 'x', employer: 'acme', friends: ['ada', 'bob'] },
}

/** A reply that must be none of a refusal. */
async function done(replying: Promise<Reply>): Promise<Reply> {
  const reply = await replying
  if (reply.status >= 300) throw new Error(JSON.stringify(reply.body))
  return reply
}

const statementsDir = fileURLToPath(new URL('../../src', import.meta.url))

async function namesOfStatements(): Promise<string[]> {
  const files = (await readdir(statementsDir, { recursive: true })).filter(file => /sql\.ts$/.test(file))
  const modules = await Promise.all(files.map(file => import(pathToFileURL(join(statementsDir, file)).href)))
  const is = (value: unknown): value is Statement =>
    typeof value === 'object' && value !== null && 'name' in value && 'text' in value
  // Some come in groups, by direction or by identifier.
  const all = modules.flatMap(module =>
    Object.values(module).flatMap(value => (is(value) ? value : Object.values(value as object))),
  )
  return all.filter(is).map(({ name }) => name)
}

/** Run by exports. */
const ofExports = ['prepare_copy', 'copy_all']

/** On the directory of organizations, on the service's keys, on all tables at once, or for an organization's birth. */
const ofNobody = [
  'analyze_entities',
  'analyze_terms',
  'find_organization',
  'insert_change_head',
  'insert_first_consent_type',
  'insert_organization',
  'insert_signing_key',
  'insert_sweep',
  'estimate_changes',
  'delete_dead_keys',
  'delete_verifying_key',
  'extend_signing_key',
  'list_organizations',
  'list_signing_keys',
  'lock_signing_keys',
  'read_signing_key',
  'read_verifying_keys',
  'silence_older_keys',
  'read_signing_keys',
  'read_versions',
]

/** What is done again under its key, and under one that is too old. */
async function repeat({ send }: Shop) {
  for (const key of ['new', 'new', 'old'])
    await done(send('POST', '/v1/people/upsert', { external_id: 'again' }, { 'Idempotency-Key': key }))
  await done(send('DELETE', '/v1/people/forgotten'))
  await done(send('POST', '/v1/people', { external_id: 'forgotten' }, { 'Idempotency-Key': 'old' }))
  await forgetKeys(service.db)
}

async function fetchTokens({ id, key }: Shop) {
  const { db } = service
  const credentials = await createClient(db, { organizationKey: key, name: 'tests', scope: 'people:read' })
  expect(await verifyClient(db, credentials)).toBeDefined()
  expect(await listClients(db, id)).toHaveLength(1)
  await revokeClient(db, credentials.client_id)
}

/** A day's work: every endpoint, and what runs beside them. */
async function work(shop: Shop) {
  const { send } = shop
  await repeat(shop)
  await fetchTokens(shop)
  const ok = (method: string, path: string, body?: unknown) => done(send(method, path, body))
  const ada = (await ok('GET', '/v1/people/ada')).body.data
  const acme = (await ok('GET', '/v1/stacks/companies/acme')).body.data
  await ok('POST', '/v1/people', { external_id: 'new', attribute_values: { referrer: 'born', city: 'Paris' } })
  await ok('PATCH', '/v1/people/ada', {
    sms_consent: true,
    attribute_values: { city: 'Oslo', friends: ['eve', 'unborn'] },
  })
  await ok('PUT', `/v1/people/internal/${ada.id}`, { external_id: 'ada2', attribute_values: { city: 'Rome' } })
  await ok('POST', '/v1/people/upsert', { external_id: 'bob', email_consent: false })
  await ok('DELETE', '/v1/people/gone')
  await ok('GET', `/v1/people/internal/${ada.id}`)
  await ok('POST', `/v1/people/internal/${ada.id}/related`, { target: 'people' })
  await ok('GET', '/v1/stacks/companies/acme')
  await ok('GET', `/v1/stacks/companies/internal/${acme.record_id}`)
  // An export has a connection of its own, which nobody watches: it must show what reads show, and that once.
  const people = await exportAll(shop, '/v1/people/export')
  expect(new Set(people.map(({ id }) => id)).size).toBe(people.length)
  for (const shown of people) expect(shown).toEqual((await ok('GET', `/v1/people/internal/${shown.id}`)).body.data)
  expect(await exportAll(shop, '/v1/stacks/companies/export')).toHaveLength(1)
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
  for (const direction of ['asc', 'desc']) {
    const cursor_configuration = { size: 2, after_id: ada.id }
    await ok('POST', '/v1/people/list', { sorting_type: direction, cursor_configuration })
    await ok('POST', '/v1/people/list', { sorting_type: direction })
    await ok('POST', '/v1/stacks/companies/list', { sorting_type: direction })
    await ok('POST', '/v1/people/bob/related', { target: 'people', sorting_type: direction })
    await ok('POST', `/v1/stacks/companies/acme/related`, { target: 'people', sorting_type: direction })
  }
  for (const filter of filters(ada.id)) await ok('POST', '/v1/people/filter', { filter, sort_direction: 'asc' })
  // A stack is searched for a key once, and the changes from then on.
  for (const _ of [1, 2]) await ok('POST', '/v1/people/filter', { filter: { 'attribute_values.nothing': 1 } })
  await ok('POST', '/v1/stacks/companies/filter', {
    filter: { 'attribute_values.founder': { $some: { email: person.email } } },
  })
  await define(send)
  await backfillIndexes(service.db)
  for (const filter of filters(ada.id)) await ok('POST', '/v1/people/filter', { filter })
  await ok('PATCH', '/v1/schema/attributes/4', { indexed: false })
  await backfillIndexes(service.db)
  await cleanDanglingLinks(service.db, { graceMs: -1_000 })
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
  { $not: { state: 'placeholder' }, created_at: { $gt: '2020-01-01T00:00:00Z' } },
]

async function define(send: Shop['send']) {
  const ok = (method: string, path: string, body: unknown) => done(send(method, `/v1/schema/${path}`, body))
  await ok('POST', 'stacks', { key: 'made', kind: 'item' })
  await ok('PATCH', 'stacks/made', { name: 'Made' })
  await ok('POST', 'consent-types', { key: 'made', channels: [{ channel: 'email', is_default: true }] })
  await ok('PATCH', 'consent-types/2', { state: 'archived' })
  await ok('POST', 'attributes', { key: 'made', owner: 'made', type: 'date' })
  await ok('PATCH', 'attributes/5', { indexed: true })
  for (const path of ['stacks', 'attributes', 'consent-types', 'stacks/made', 'attributes/5', 'consent-types/1'])
    await done(send('GET', `/v1/schema/${path}`))
  await done(send('GET', '/v1/schema'))
  await done(send('GET', '/v1/organization'))
}

test('every statement reads and writes the rows of its organization alone, though another has the same rows, to the identifier', {
  timeout: 120_000,
}, async () => {
  const watched = watchTwin(service.db, tables, shop.id, twin.id)
  await work(shop).finally(watched.release)
  const known = await namesOfStatements()
  const times = [...watched.ran.values()].reduce((sum, count) => sum + count, 0)
  console.log(
    `twins: ${watched.ran.size} statements ran ${times} times beside identical data in ${tables.length} tables`,
  )
  expect(watched.leaks).toEqual([])
  expect(known.filter(name => !watched.ran.has(name) && ![...ofNobody, ...ofExports].includes(name))).toEqual([])
})

test('the watch sees a statement that forgets its organization', async () => {
  const forgetful = [
    { name: 'forgetful_read', text: 'select id from entities where $1::integer is not null and external_id = $2' },
    {
      name: 'forgetful_write',
      text: 'update entities set version = version + 1 where $1::integer is not null and external_id = $2',
    },
  ]
  const watched = watchTwin(service.db, tables, shop.id, twin.id)
  for (const one of forgetful) await service.db.query(one, [shop.id, 'bob'])
  watched.release()
  expect(watched.leaks).toEqual(['forgetful_read read the twin', 'forgetful_write changed the twin'])
})
