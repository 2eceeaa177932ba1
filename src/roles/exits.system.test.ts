import { describe, expect, it } from 'vitest'
import { follow } from '../../test/support/followers.ts'
import { ndjsonHeaders } from '../../test/support/lines.ts'
import { allScopes, type Organization, useOwnService } from '../../test/support/service.ts'
import { expectSuccess } from '../../test/support/shop.ts'
import { backfillIndexes } from '../entities/indexes/index-backfill.ts'
import { searchFollower } from '../entities/indexes/search-index.ts'
import { ledgerFollower } from '../ledger/seal.ts'
import { routeTable } from '../process/app.ts'
import type { Route } from '../route/route.ts'
import { segmentFollower } from '../segments/segment-follower.ts'

// Two organizations differ only in the values of fields that a role closes. A caller with the role must get the same
// responses from both, and no response may contain a closed value.

const service = useOwnService()

const openPeople = ['first_name', 'last_name', 'email', 'mobile_prefix', 'mobile_number', 'language', 'consents']
const flags = ['email_consent', 'sms_consent', 'push_notification_consent']
const roles = {
  desk: {
    people: {
      read: [...openPeople, ...flags, 'attribute_values.city'],
      write: ['first_name', 'attribute_values.city'],
    },
    orders: {
      read: ['attribute_values.total', 'attribute_values.buyer', 'attribute_values.place'],
      write: ['attribute_values.total'],
    },
  },
  thin: { people: { read: ['first_name'] } },
}
type RoleKey = keyof typeof roles

/** An organization, the names of its internal identifiers, and the token of each role. */
type Side = Organization & { ids: Map<string, string>; tokens: Record<RoleKey, string> }

/** The closed values differ between the sides in content, order, size and kind. */
const closedOf = (side: number) => ({
  date_of_birth: side === 0 ? '1971-01-01' : '1999-12-31',
  attribute_values: side === 0 ? { diagnosis: 'canary aaa', rank: 1 } : { diagnosis: 'canary zzzzzzzzzz', rank: 9 },
})
const canaries = /canary|1971-01-01|1999-12-31|cautious/

async function createSide(side: number): Promise<Side> {
  const organization = await service.organization()
  const { send } = organization
  const ok = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    (await expectSuccess(send(method, path, body, headers))).body.data
  for (const key of ['orders', 'files']) await ok('POST', '/v1/schema/stacks', { key, kind: 'item' })
  for (const body of [
    { owner: 'people', key: 'city', type: 'text', indexed: true },
    { owner: 'people', key: 'diagnosis', type: 'text', indexed: true },
    { owner: 'people', key: 'rank', type: 'number', indexed: true },
    { owner: 'people', key: 'doctor', type: 'person' },
    { owner: 'orders', key: 'total', type: 'number', indexed: true },
    { owner: 'orders', key: 'place', type: 'text', searchable: true },
    { owner: 'orders', key: 'remark', type: 'text', indexed: true },
    { owner: 'orders', key: 'buyer', type: 'person' },
    { owner: 'orders', key: 'payer', type: 'person' },
    { owner: 'files', key: 'about', type: 'person' },
  ])
    await ok('POST', '/v1/schema/attributes', body)
  await ok('PATCH', '/v1/schema/stacks/orders', { label: '{remark}' })
  const other = closedOf(side)
  for (const [index, external_id] of ['ada', 'bob', 'eve', 'spare', 'leaves'].entries()) {
    // The order of the closed values differs between the organizations.
    const rank = side === 0 ? index : 9 - index
    const doctor = external_id === 'ada' ? undefined : side === 0 ? 'ada' : index % 2 === 0 ? 'bob' : null
    await ok('POST', '/v1/people', {
      external_id,
      first_name: `First ${index}`,
      last_name: `Last ${index}`,
      email: `${external_id}@example.com`,
      mobile_number: `+39 333 765432${index}`,
      date_of_birth: other.date_of_birth,
      email_consent: index % 2 === 0,
      attribute_values: { ...other.attribute_values, rank, city: index % 2 === 0 ? 'Rome' : 'Pisa', doctor },
    })
    const attribute_values = { total: index * 10, remark: `canary ${side} ${rank}`, buyer: external_id, payer: doctor }
    await ok('POST', '/v1/stacks/orders', { external_id: `order-${external_id}`, attribute_values })
  }
  await ok('POST', '/v1/stacks/files', { external_id: 'file', attribute_values: { about: side === 0 ? 'ada' : 'bob' } })
  // The closed values have a history too, and the open values have the same history on both sides.
  await ok('PATCH', '/v1/people/ada', { attribute_values: { diagnosis: `cautious ${side}`, city: 'Turin' } })
  await ok('PATCH', '/v1/people/ada', { attribute_values: { ...other.attribute_values, city: 'Rome' } })
  await ok('POST', '/v1/segments', { key: 'romans', filter: { 'attribute_values.city': 'Rome' } })
  await ok('POST', '/v1/segments', {
    key: 'ill',
    filter: { 'attribute_values.rank': { $gt: 3 } },
  })
  await ok('POST', '/v1/webhooks', { url: 'https://hooks.example.com/kith', events: ['person.*'], active: false })
  await ok('POST', '/v1/people/import', '{"external_id":"imported"}\n', {
    ...ndjsonHeaders,
    'X-Request-Id': 'import-1',
  })
  const tokens = {} as Side['tokens']
  for (const [key, fields] of Object.entries(roles)) {
    await ok('POST', '/v1/roles', { key, scopes: allScopes.split(' '), fields })
    const request = { scopes: allScopes.split(' '), name: `token ${key}`, expires_in: 3_600, role: key }
    tokens[key as RoleKey] = (await ok('POST', '/v1/tokens', request)).token
  }
  const ids = new Map<string, string>()
  for (const external_id of ['ada', 'bob', 'eve', 'spare', 'leaves', 'imported'])
    ids.set((await ok('GET', `/v1/people/${external_id}`)).id, `<${external_id}>`)
  for (const external_id of ['ada', 'bob', 'eve', 'spare', 'leaves'])
    ids.set((await ok('GET', `/v1/stacks/orders/order-${external_id}`)).record_id, `<order-${external_id}>`)
  return { ...organization, ids, tokens }
}

type Request = { method: string; path: string; body?: unknown; headers?: Record<string, string> }
type Answer = { status: number; text: string }

const idOf = ({ ids }: Side, name: string) => [...ids].find(([, value]) => value === `<${name}>`)![0]

async function ask(side: Side, role: RoleKey, { method, path, body, headers = {} }: Request): Promise<Answer> {
  const controller = new AbortController()
  const isLines = typeof body === 'string'
  const response = await fetch(`${service.address}${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${side.tokens[role]}`,
      ...(body !== undefined && !isLines && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: isLines ? body : JSON.stringify(body) }),
    signal: controller.signal,
  })
  const shown = [...response.headers].filter(([name]) => !['date', 'x-request-id', 'kith-log-id'].includes(name))
  let text = ''
  if (response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      // The newest change is the last event of the stream.
      if (/"subject":"role","id":2/.test(text)) break
    }
    controller.abort()
  } else text = await response.text()
  return { status: response.status, text: normalize(`${JSON.stringify(shown)}\n${text}`, side) }
}

/**
 * Replaces the parts that differ in every organization and request: identifiers, times, keys, cursors, secrets, and the
 * digests of bodies with these parts.
 */
function normalize(text: string, { ids, key }: Side): string {
  let shown = text.replaceAll(key, '<organization>')
  for (const [id, name] of ids) shown = shown.replaceAll(id, name)
  return shown
    .replace(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, '<uuid>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/\b[\da-f]{24}\b/g, '<record>')
    .replace(/"(next_cursor|client_id|client_secret|token|kid|secret)":"[^"]+"/g, '"$1":"<made>"')
    .replace(/<organization>\.[\w-]+/g, '<client>')
    .replace(/(?<="etag","\\"(\d+-)?)[\w-]{22}(?=\\"")/, '<digest>')
}

/** The requests to an endpoint: the first example of its body, and the requests that the list below adds. */
function requestsOf(row: Route, side: Side): Request[] {
  const examples = (row.body as { examples?: unknown[] } | undefined)?.examples ?? []
  const body = row.example?.body ?? examples[0]
  const path = row.path
    .replace('{stack_key}', 'orders')
    .replace('{external_id}', row.path.startsWith('/v1/stacks') ? 'order-ada' : 'ada')
    .replace('{uuid}', () => idOf(side, 'bob'))
    .replace('{record_id}', () => idOf(side, 'order-bob'))
    .replace('{segment_key}', 'romans')
    .replace('{consent_type_id}', '1')
    .replace('{channel}', 'email')
    .replace('{address}', 'ada@example.com')
    .replace('{import_id}', 'import-1')
    .replace('{role_key}', 'desk')
    .replace('{tile}', 'entries/000.p/1')
    .replace('{id}', '1')
    .replace(/\{(index|old_size|version)\}/, '1')
    .replace('{jti}', '00000000-0000-4000-8000-000000000000')
    .replace('{session_id}', '00000000-0000-4000-8000-000000000000')
    .replace('{client_id}', `${side.key}.Zm9vYmFyYmF6cXV4`)
    .replace('{key}', 'newsletter')
  const { method } = row
  const takesLines = row.line !== undefined
  const plain: Request = takesLines
    ? { method, path, body: '{"external_id":"ada","first_name":"Imported"}\n', headers: ndjsonHeaders }
    : { method, path, ...(method !== 'GET' && method !== 'DELETE' && { body: body ?? {} }) }
  const added = (extras[row.operationId] ?? []).map(extra => ({ ...plain, ...extra, path: path + (extra.query ?? '') }))
  const accepted = Object.keys(row.mediaTypes ?? {}).map(Accept => ({
    ...plain,
    headers: { ...plain.headers, Accept },
  }))
  const dry = row.dryRun && body ? [{ ...plain, path: `${path}?dry_run=true` }] : []
  return [...dry, plain, ...accepted, ...added]
}

type Extra = { query?: string; body?: unknown; headers?: Record<string, string> }

const everyPage: Extra[] = [
  { body: {} },
  { body: { cursor_configuration: { size: 2 }, fields: ['first_name', 'attribute_values.city'] } },
  { body: { fields: ['date_of_birth'] } },
  { body: { fields: ['attribute_values'] } },
  { body: { fields: ['attribute_values.diagnosis'] } },
  { body: { include: ['doctor'] } },
  { body: { include: ['buyer'], labels: true } },
  { body: { include: ['payer'] } },
  { body: { labels: true, links: 'id' } },
  { body: { sort: { field: 'date_of_birth' } } },
  { body: { sort: { field: 'attribute_values.rank' } } },
  { body: { sort: { field: 'attribute_values.total', direction: 'desc' }, count: true } },
  { body: { sort: { field: 'incoming.orders.payer', measure: { op: 'count' } } } },
  { body: { sort: { field: 'incoming.orders.buyer', measure: { op: 'sum', field: 'attribute_values.total' } } } },
  {
    body: {
      sort: { field: 'incoming.orders.buyer', measure: { op: 'count' }, where: { 'attribute_values.remark': 'x' } },
    },
  },
]
const filtered = [
  { date_of_birth: '1971-01-01' },
  { date_of_birth: { $exists: true } },
  { 'attribute_values.city': 'Rome' },
  { 'attribute_values.diagnosis': { $contains: 'canary a' } },
  { $or: [{ first_name: 'First 1' }, { $not: { 'attribute_values.rank': { $gt: 3 } } }] },
  { 'attribute_values.doctor': 'ada' },
  { 'attribute_values.doctor': { $some: { first_name: 'First 0' } } },
  { 'attribute_values.buyer': { $some: { 'attribute_values.rank': 1 } } },
  { 'attribute_values.buyer': { $some: { first_name: 'First 1' } } },
  { 'incoming.orders.payer': { $count: { $gte: 1 } } },
  { 'incoming.orders.buyer': { $sum: { 'attribute_values.total': { $gt: 10 } } } },
  { 'incoming.orders.buyer': { $count: { $gte: 1 }, $where: { 'attribute_values.remark': { $exists: true } } } },
  { 'incoming.files.about': { $some: {} } },
  { $segment: 'ill' },
  { $segment: 'romans' },
  { consents: { $some: { consent_type_id: 1, state: true } } },
  { contactable: { consent_type_id: 1, channel: 'email' } },
  { deliverability: { $some: { channel: 'email', state: 'deliverable' } } },
]
const filters: Extra[] = [
  ...filtered.map(filter => ({ body: { filter, count: true } })),
  ...everyPage.map(({ body }) => ({ body: { filter: { state: 'active' }, ...(body as object) } })),
]
const aggregates: Extra[] = [
  { body: { group_by: ['date_of_birth'] } },
  { body: { group_by: ['attribute_values.city'], measures: [{ op: 'count' }] } },
  { body: { measures: [{ op: 'max', field: 'attribute_values.rank' }] } },
  { body: { measures: [{ op: 'sum', field: 'attribute_values.total' }] } },
  { body: { group_by: ['attribute_values.doctor.first_name'] } },
  { body: { group_by: ['attribute_values.buyer.date_of_birth'] } },
  { body: { group_by: ['attribute_values.buyer.attribute_values.city'] } },
  ...filtered.map(filter => ({ body: { filter } })),
]
const reads: Extra[] = [
  { query: '?labels=true' },
  { query: '?links=id' },
  { query: '?version=1' },
  { query: '?version=2' },
  { query: '?at=2999-01-01T00:00:00Z' },
]
const representation = { Prefer: 'return=representation' }
const patches: Extra[] = [
  { body: { first_name: 'Changed' }, headers: representation },
  { body: { attribute_values: { total: 7 } }, headers: representation },
  { body: { attribute_values: { diagnosis: 'canary aaa' } } },
  { body: { date_of_birth: '1971-01-01' } },
  { body: { attribute_values: { rank: 0 } }, query: '?dry_run=true' },
  { body: { first_name: 'Tried', attribute_values: { city: 'Bari' } }, query: '?dry_run=true' },
  { body: {}, headers: { 'If-Match': '"1"' } },
]
const searches: Extra[] = [{ body: { text: 'First' } }, { body: { text: 'canary' } }, { body: { text: 'order-ada' } }]
const batches: Extra[] = [
  {
    body: {
      operations: [
        { op: 'patch', external_id: 'bob', body: { first_name: 'Batch' } },
        { op: 'patch', external_id: 'bob', body: { date_of_birth: '1971-01-01' } },
        { op: 'put', external_id: 'bob', body: {} },
        { op: 'upsert', external_id: 'order-bob', body: { attribute_values: { total: 3 } } },
        { op: 'upsert', external_id: 'order-bob', body: { attribute_values: { remark: 'canary 0 1' } } },
      ],
    },
  },
]
const upserts: Extra[] = [
  { body: { external_id: 'ada', first_name: 'Upserted' } },
  { body: { match: ['email'], email: 'bob@example.com' } },
  { body: { external_id: 'order-ada', attribute_values: { total: 4 } } },
  { body: { external_id: 'ada', date_of_birth: '1971-01-01' } },
]
const related: Extra[] = [
  ...['people', 'orders', 'files'].flatMap(target =>
    [{}, { attribute_key: 'doctor' }, { attribute_key: 'buyer' }, { attribute_key: 'payer', count: true }].map(
      rest => ({
        body: { target, ...rest },
      }),
    ),
  ),
]
const changes: Extra[] = [
  { query: '?limit=1000' },
  { query: '?subject=person' },
  { query: '?stack=files' },
  { query: '?segment=ill' },
  { query: '?subject=hold' },
]

const dryRun = { dry_run: true }

const extras: Record<string, Extra[]> = {
  ...Object.fromEntries(['listPeople', 'listRecords'].map(name => [name, everyPage])),
  ...Object.fromEntries(['filterPeople', 'filterRecords'].map(name => [name, filters])),
  ...Object.fromEntries(['aggregatePeople', 'aggregateRecords'].map(name => [name, aggregates])),
  ...Object.fromEntries(['getPerson', 'getPersonById', 'getRecord', 'getRecordById'].map(name => [name, reads])),
  ...Object.fromEntries(
    ['patchPerson', 'patchPersonById', 'patchRecord', 'patchRecordById'].map(name => [name, patches]),
  ),
  ...Object.fromEntries(['searchPeople', 'searchRecords', 'search'].map(name => [name, searches])),
  search: [...searches, { body: { text: 'First', owners: ['people', 'orders', 'files'], labels: true } }],
  ...Object.fromEntries(['batchPeople', 'batchRecords'].map(name => [name, batches])),
  ...Object.fromEntries(['upsertPerson', 'upsertRecord'].map(name => [name, upserts])),
  ...Object.fromEntries(
    ['listPersonRelated', 'listPersonRelatedById', 'listRecordRelated', 'listRecordRelatedById'].map(name => [
      name,
      related,
    ]),
  ),
  createPerson: [{ body: { external_id: 'new', first_name: 'New' } }, { body: { date_of_birth: '1971-01-01' } }],
  createRecord: [
    { body: { external_id: 'new', attribute_values: { total: 1 } } },
    { body: { attribute_values: { remark: 'x' } } },
  ],
  changePeopleInBulk: [
    { body: { ...dryRun, filter: { first_name: 'Ada' }, change: { op: 'patch', body: { first_name: 'New' } } } },
    { body: { ...dryRun, filter: { 'attribute_values.city': 'Pisa' }, change: { op: 'patch', body: {} } } },
    { body: { ...dryRun, filter: {}, change: { op: 'patch', body: { date_of_birth: '1971-01-01' } } } },
    { body: { ...dryRun, filter: {}, change: { op: 'delete' } } },
    { body: { ...dryRun, filter: {}, change: { op: 'erase', reason: 'x' } } },
  ],
  changeRecordsInBulk: [
    { body: { ...dryRun, filter: {}, change: { op: 'patch', body: { attribute_values: { total: 2 } } } } },
    { body: { ...dryRun, filter: { 'attribute_values.remark': 'x' }, change: { op: 'patch', body: {} } } },
  ],
  lookUpPeople: [
    { body: { email: 'bob@example.com' } },
    { body: { external_id: 'bob' } },
    { body: { mobile_number: '+39 333 7654321' } },
  ],
  listChanges: changes,
  createSegment: [
    { body: { key: 'young', filter: { date_of_birth: { $gt: '1990-01-01' } } } },
    { body: { key: 'pisans', filter: { 'attribute_values.city': 'Pisa' } } },
    { body: { key: 'nested', filter: { $segment: 'ill' } } },
  ],
  listSegmentPeople: [{ query: '?fields=first_name' }, { query: '?sort=date_of_birth' }],
  decideContacts: [{ body: { consent_type_id: 1, channel: 'email', external_ids: ['ada', 'bob'], links: false } }],
  decideContact: [{ body: { consent_type_id: 1, channel: 'email' } }],
  decideContactById: [{ body: { consent_type_id: 1, channel: 'email' } }],
  exportPeople: [{ body: {} }, { body: { links: 'id' } }],
  exportRecords: [{ body: {} }],
  importPeople: [
    {
      body: '{"external_id":"bob","date_of_birth":"1971-01-01"}\n{"external_id":"ada","attribute_values":{"city":"Rome"}}\n',
    },
  ],
}

/** Endpoints that end an entity come last, so that the entity exists for the other requests. */
const isEnd = ({ method, path }: Route) => method === 'DELETE' || /\/(erase|merge|unmerge|undo)$/.test(path)

/** A replacement also sets the closed fields. */
const needWhole = ['replacePerson', 'replacePersonById', 'replaceRecord', 'replaceRecordById']

describe.each(Object.keys(roles) as RoleKey[])('whoever has the role %s', role => {
  it('finds out nothing of a closed field by any endpoint', { timeout: 120_000 }, async () => {
    const sides = [await createSide(0), await createSide(1)] as const
    await backfillIndexes(service.db)
    await follow(service.db, [searchFollower(), segmentFollower(), ledgerFollower({ originName: 'kith' })])
    const table = routeTable(service)
    const rows = [...table.filter(row => !isEnd(row)), ...table.filter(isEnd)]
    const statuses = new Map<string, number[]>()
    let compared = 0
    for (const row of rows) {
      const [ones, others] = sides.map(side => requestsOf(row, side)) as [Request[], Request[]]
      for (const [index, request] of ones.entries()) {
        const [one, other] = await Promise.all([ask(sides[0], role, request), ask(sides[1], role, others[index]!)])
        const where = `${row.operationId} ${index} ${JSON.stringify(request)}`
        expect({ where, ...other }).toEqual({ where, ...one })
        // A refusal may quote values of the request.
        const told = JSON.stringify(request)
        if (!canaries.test(told))
          expect({ where, text: canaries.exec(one.text)?.[0] }).toEqual({ where, text: undefined })
        expect({ where, status: one.status }).not.toMatchObject({ status: 500 })
        statuses.set(row.operationId, [...(statuses.get(row.operationId) ?? []), one.status])
        compared += 1
      }
    }
    console.log(`role ${role}: ${compared} answers of ${statuses.size} endpoints compared`)
    // Each endpoint with the fields `shown` has at least one success.
    const silent = table.filter(
      row => row.fields === 'shown' && !statuses.get(row.operationId)!.some(status => status < 300),
    )
    if (role === 'desk') expect(silent.map(({ operationId }) => operationId)).toEqual(needWhole)
  })
})
