import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { routeTable } from '../../src/process/app.ts'
import type { Route } from '../../src/route/route.ts'
import { createSender, type RawResponse, type Sender } from '../hostile/sender.ts'
import { readDigest } from '../hostile/test-tenant.ts'
import { signIn } from '../support/browser-session.ts'
import { follow } from '../support/followers.ts'
import { ndjsonHeaders } from '../support/lines.ts'
import { type Organization, useOwnService } from '../support/service.ts'
import { bodyCases, type Case, isIdentifier, type OwnIds, type Pairs, pathCases, webhook } from './foreign.ts'

const service = useOwnService()
let sender: Sender
let owner: Organization
let pairs: Pairs
let routes: Route[]

/** Declares the definitions that all organizations of this file have under the same keys. */
async function declareDefinitions({ send }: Organization) {
  await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
  for (const body of [
    { owner: 'people', key: 'referrer', type: 'person' },
    { owner: 'people', key: 'friends', type: 'person', cardinality: 'many' },
    { owner: 'people', key: 'bought', type: 'stack', target_stack: 'orders', cardinality: 'many' },
    { owner: 'orders', key: 'buyer', type: 'person' },
    { owner: 'orders', key: 'note', type: 'text', searchable: true },
  ])
    expect((await send('POST', '/v1/schema/attributes', body)).status).toBe(201)
}

type Probe = Organization & { ownIds: OwnIds }

/**
 * Creates two identical organizations. One sends the owner's identifiers, the other sends unknown ones, so that neither request affects
 * the other.
 */
async function createProbes(): Promise<[Probe, Probe]> {
  const make = async () => {
    const probe = await service.organization()
    await declareDefinitions(probe)
    const person = await probe.send('POST', '/v1/people', { external_id: 'ada' })
    const record = await probe.send('POST', '/v1/stacks/orders', { external_id: 'ada' })
    await probe.send('POST', '/v1/webhooks', webhook())
    await probe.send('POST', '/v1/segments', { key: 'shared', filter: {} })
    await probe.send('POST', '/v1/roles', { key: 'shared', scopes: [] })
    return { ...probe, ownIds: { uuid: person.body.data.id, record_id: record.body.data.record_id } }
  }
  return [await make(), await make()]
}

/** Returns an unused identifier that differs only in its last character. */
const similarId = (id: string) => id.slice(0, -1) + (id.endsWith('0') ? '1' : '0')
const pair = (foreign: string) => ({ foreign, unknown: similarId(foreign) })

beforeAll(async () => {
  sender = createSender(service)
  owner = await service.organization()
  await declareDefinitions(owner)
  const create = async (path: string, body: object) => (await owner.send('POST', path, body)).body.data
  await create('/v1/schema/stacks', { key: 'secrets9', kind: 'item' })
  const relationship = await create('/v1/schema/attributes', { owner: 'people', key: 'secretly9', type: 'person' })
  await create('/v1/schema/attributes', { owner: 'orders', key: 'secretly9', type: 'person' })
  const consent_type = await create('/v1/schema/consent-types', { key: 'secret', channels: [{ channel: 'email' }] })
  await create('/v1/schema/consent-types/1/texts', { language: 'en', text: 'x' })
  const person = await create('/v1/people', {
    external_id: 'secret-9',
    email: 'secret-9@example.com',
    email_consent: true,
    attribute_values: { referrer: 'x' },
  })
  const record = await create('/v1/stacks/orders', { external_id: 'secret-9', attribute_values: { buyer: 'secret-9' } })
  await create('/v1/stacks/secrets9', { external_id: 'o1' })
  // The webhook with the number 1 belongs to each organization.
  await create('/v1/webhooks', webhook())
  const ownWebhook = await create('/v1/webhooks', webhook())
  const apiClient = await create('/v1/clients', { name: 'secret', scopes: ['people:read'] })
  const apiToken = await create('/v1/tokens', { name: 'secret token', scopes: ['people:read'], expires_in: 3_600 })
  const account = await create('/v1/accounts', { name: 'secret person', role: null })
  await create('/v1/deliverability/sources', { key: 'secret9', provider: 'postmark' })
  for (const key of ['shared', 'secret9']) await create('/v1/segments', { key, filter: {} })
  for (const key of ['shared', 'secret9']) await create('/v1/roles', { key, scopes: [] })
  await create('/v1/retention-rules', { segment: 'secret9', after_days: 30, action: 'erase' })
  const headers = { ...ndjsonHeaders, 'X-Request-Id': 'secret-import-9' }
  await owner.send('POST', '/v1/people/import', '{"external_id":"imported"}\n', headers)
  const mapped = { owner: 'people', header: ['secret 9'], fields: ['external_id'] }
  const mapping = (await owner.send('PUT', '/v1/import-mappings', mapped)).body.data
  const job = { filter: { external_id: 'imported' }, change: { op: 'delete' } }
  await owner.send('POST', '/v1/people/bulk', job, { 'X-Request-Id': 'secret-job-9' })
  const session = await signIn(service, owner)
  pairs = {
    external_id: pair('secret-9'),
    email: { foreign: 'secret-9@example.com', unknown: 'secret-8@example.com' },
    uuid: pair(person.id),
    record_id: pair(record.record_id),
    stack_key: pair('secrets9'),
    attribute_key: pair('secretly9'),
    attribute_id: { foreign: String(relationship.id), unknown: '9' },
    consent_type_id: { foreign: String(consent_type.id), unknown: '9' },
    text_version: { foreign: '1', unknown: '2' },
    segment_key: pair('secret9'),
    role_key: pair('secret9'),
    session_id: pair(session.reply.body.data.id),
    client_id: pair(apiClient.client_id),
    import_id: pair('secret-import-9'),
    mapping_id: pair(mapping.id),
    job_id: pair('secret-job-9'),
    jti: pair(apiToken.jti),
    account_id: pair(account.id),
    source_key: pair('secret9'),
    rule_id: { foreign: '1', unknown: '9' },
    webhook_id: { foreign: String(ownWebhook.id), unknown: '9' },
  }
  routes = routeTable(service)
})
afterAll(async () => {
  sender.close()
})

/** Returns the whole response without what differs in every request: the request id, the date, times and new identifiers. */
function normalize({ status, headers, text }: RawResponse, identifier: string) {
  const { date: _, 'x-request-id': request_id, ...rest } = headers
  const responseText = `${JSON.stringify(rest)}\n${text}`
  // Responses never repeat the id of a definition, so these are compared to the byte.
  const withoutIdentifier = identifier.length > 3 ? responseText.replaceAll(identifier, '<identifier>') : responseText
  const withoutRequestId = withoutIdentifier
    .replaceAll(request_id!, '<request id>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/"log_id":"[\da-f-]+"/g, '"log_id":"<log>"')
  // A create returns new identifiers and secrets. All other responses are compared to the byte.
  const withoutCreated = withoutRequestId
    .replace(/"(id|record_id)":"[\da-f-]+"/g, '"$1":"<made>"')
    .replace(/internal\/[\da-f-]+/g, 'internal/<made>')
    .replace(/"secret":"whsec_[^"]+"/, '"secret":"<made>"')
  return `${status} ${status === 201 || status === 200 ? withoutCreated : withoutRequestId}`
}

async function compare(
  { where, pair, buildRequest }: Case,
  [foreignProbe, unknownProbe]: [Probe, Probe],
): Promise<number> {
  const readDigests = () => Promise.all([owner, foreignProbe, unknownProbe].map(({ id }) => readDigest(service, id)))
  const before = await readDigests()
  const foreign = await sender.send(foreignProbe.token, buildRequest(pair.foreign, foreignProbe.ownIds))
  const unknown = await sender.send(unknownProbe.token, buildRequest(pair.unknown, unknownProbe.ownIds))
  expect(normalize(foreign, pair.foreign), where).toBe(normalize(unknown, pair.unknown))
  const after = await readDigests()
  expect(after[0], where).toBe(before[0])
  if (foreign.status >= 400) expect(after, where).toEqual(before)
  return foreign.status
}

/** Compares every case of every route, each with unchanged organizations. Returns the status of each case. */
async function compareAll(casesOf: (route: Route, pairs: Pairs) => Case[]): Promise<Map<string, number>> {
  const statuses = new Map<string, number>()
  let probes: [Probe, Probe] | undefined
  for (const testCase of routes.flatMap(route => casesOf(route, pairs))) {
    probes ??= await createProbes()
    if (testCase.where.includes('/search')) await follow(service.db, [searchFollower()])
    const status = await compare(testCase, probes)
    statuses.set(testCase.where, status)
    // A refused request has changed neither organization.
    if (status < 400) probes = undefined
  }
  return statuses
}

// The tests send hundreds of pairs of requests.
describe('an identifier of another organization', { timeout: 240_000 }, () => {
  it('gets the same response as an unknown one in every path parameter', async () => {
    const statuses = await compareAll(pathCases)
    console.log(`foreign identifiers in paths: ${statuses.size} pairs on ${routes.length} routes`)
    expect([...statuses].filter(([, status]) => ![404, 500].includes(status))).toEqual([])
    const identifiers = routes.flatMap(route =>
      Object.keys(route.params ?? {}).filter(name => isIdentifier(route, name)),
    )
    expect(statuses.size).toBe(identifiers.length)
  })

  it('gets the same response as an unknown one in every body field', async () => {
    const statuses = await compareAll(bodyCases)
    console.log(`foreign identifiers in bodies: ${statuses.size} pairs`)
    const covered = new Set([...statuses.keys()].map(where => where.split(':')[0]))
    // The other bodies of /v1/schema, a replay, an undo, duplicates, an erasure, a hold, sources, clients, tokens and accounts take no identifiers. The cursor of an export is that of a list.
    const routesWithBody = routes.filter(
      ({ body, path }) =>
        body &&
        !/\/(export|replay|duplicates|erase|hold|clients|tokens|accounts|accounts\/\{account_id\}|sources|undo)$/.test(
          path,
        ) &&
        (!path.startsWith('/v1/schema') || path.endsWith('attributes')),
    )
    expect(routesWithBody.map(({ method, path }) => `${method} ${path}`).filter(route => !covered.has(route))).toEqual(
      [],
    )
  })

  it('gets the same response as an unknown one in every query', async () => {
    const queries: [keyof Pairs, string, (identifier: string) => string][] = [
      ['uuid', 'POST /v1/people/list', id => `cursor_configuration[after_id]=${id}`],
      ['record_id', 'POST /v1/stacks/orders/list', id => `cursor_configuration[after_id]=${id}`],
      ['stack_key', 'POST /v1/people/ada/related', key => `target=${key}`],
      ['external_id', 'POST /v1/people', name => `attribute_values[referrer]=${name}`],
      [
        'consent_type_id',
        'POST /v1/people',
        id => `consents[0][consent_type_id]=${id}&consents[0][channel]=email&consents[0][state]=true`,
      ],
      ['external_id', 'POST /v1/people/filter', name => `filter[external_id]=${name}`],
      ['segment_key', 'GET /v1/changes', key => `segment=${key}`],
      ['external_id', 'GET /v1/changes', name => `entity=${name}`],
    ]
    const probes = await createProbes()
    for (const [kind, where, queryOf] of queries) {
      const [method, path] = where.split(' ') as [string, string]
      const testCase = {
        where,
        pair: pairs[kind],
        buildRequest: (identifier: string) => ({
          method,
          path: `${path}?${queryOf(identifier)}`,
          headers: { Prefer: 'references=strict' },
        }),
      }
      await compare(testCase, probes)
    }
    console.log(`foreign identifiers in queries: ${queries.length} pairs`)
  })
})
