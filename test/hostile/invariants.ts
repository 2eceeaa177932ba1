import { isDeepStrictEqual } from 'node:util'
import { ruleNames } from '../../src/values/attribute-rules.ts'
import type { WireChange } from '../support/changes.ts'
import { dryRunOf, findDefinitionMismatch, findDryRunMismatch, type WireDryRun } from '../support/dry-runs.ts'
import { ndjsonType } from './operations.ts'
import { findMismatch } from './reading.ts'
import { type Plan, paramOf, requestOf } from './requests.ts'
import { linesOf, type RawRequest, type RawResponse } from './sender.ts'
import { readHead, type TestTenant } from './test-tenant.ts'
import { trimStrings } from './texts.ts'

type Values = Record<string, unknown>
type Entity = { id?: string; record_id?: string; external_id: string | null } & Values

/** The text of a request, with at most 2,000 characters of its body. */
export const formatRequest = ({ method, path, headers, body }: RawRequest): string =>
  `${method} ${path} ${JSON.stringify(headers)}\n${String(body ?? '').slice(0, 2_000)}`

/** Throws an Error with the problem, the request and the response. */
export function throwViolation(request: RawRequest, response: RawResponse, problem: string): never {
  throw new Error(`${problem}\n${formatRequest(request)}\n→ ${response.status} ${response.text.slice(0, 2_000)}`)
}

/** Sends a request that the document allows. Throws unless the response and the stored data keep the invariants. */
export async function sendAllowed(tenant: TestTenant, plan: Plan): Promise<RawResponse> {
  const request = requestOf(plan, tenant)
  const token = plan.operation.scope === undefined ? '' : tenant.token
  const dryRun = plan.isRehearsed ? await rehearse(tenant, request) : undefined
  const response = await tenant.sender.send(token, request)
  const head = await readHead(tenant)
  const differing = dryRun && (await findDifference(tenant, plan, dryRun, response))
  if (differing) throwViolation(request, dryRun, `the dry run differs from the request: ${differing}`)
  const fail = (problem: string) => throwViolation(request, response, problem)
  if (response.status >= 400) {
    if (head !== tenant.head) fail('a refused request changed stored data')
    const unexplained = findUnexpectedRefusal(plan, request, response)
    if (unexplained) fail(unexplained)
    return response
  }
  const reads =
    plan.operation.method === 'GET' ||
    /(list|filter|related|contactable|lookup|aggregate|search|statistics)$/.test(plan.operation.template) ||
    (plan.operation.template.endsWith('/declare') && plan.body?.dry_run === true) ||
    (/\/(un)?merge$/.test(plan.operation.template) && plan.body?.dry_run === true)
  if (reads && head !== tenant.head) fail('a read changed stored data')
  tenant.head = head
  const mismatch = await readBack(tenant, plan, response)
  if (mismatch) fail(mismatch)
  return response
}

/** Sends a dry run of a request, which must change nothing. */
async function rehearse(tenant: TestTenant, request: RawRequest): Promise<RawResponse> {
  const response = await tenant.sender.send(tenant.token, { ...request, path: dryRunOf(request.path) })
  if ((await readHead(tenant)) !== tenant.head) throwViolation(request, response, 'a dry run changed stored data')
  return response
}

/** Returns how a dry run differs from the response and the log entries of the same request; undefined if they agree. */
async function findDifference(
  tenant: TestTenant,
  { operation, params }: Plan,
  dryRun: RawResponse,
  { status, body }: RawResponse,
): Promise<string | undefined> {
  if (status >= 400 || dryRun.status !== 200) {
    const { error, message, details } = body
    const isSame = isDeepStrictEqual([status, error, message, details], [dryRun.status, ...refusalOf(dryRun)])
    return isSame ? undefined : `the request returned ${status} ${JSON.stringify(body)}`
  }
  const { data } = dryRun.body
  const feed = await get(tenant, `/v1/changes?after=${tenant.head}&limit=1000`)
  const logged = feed.body.data.items as WireChange[]
  if ('changes' in data) return findDefinitionMismatch(data, logged)
  const kind = operation.template.startsWith('/v1/people') ? 'people' : String(params.stack_key)
  const dryRuns = operation.template.endsWith('/batch')
    ? (data.items as { dry_run?: WireDryRun }[]).flatMap(({ dry_run }) => dry_run ?? [])
    : [data as WireDryRun]
  return findDryRunMismatch(kind, dryRuns, logged)
}

const refusalOf = ({ body: { error, message, details } }: RawResponse) => [error, message, details]

/** Returns why the stored data cannot explain a refusal; undefined if they can. */
function findUnexpectedRefusal(
  { operation, headers, body }: Plan,
  request: RawRequest,
  { status, body: responseBody }: RawResponse,
): string | undefined {
  const { id, method, params, template } = operation
  const paths = responseBody.details?.map(({ path }) => path) ?? []
  if (responseBody.error === 'not_found' && params.length > 0) {
    const contract = id === 'patchPerson' ? 500 : 404
    if (status === contract) return undefined
  }
  const inBatch = template.endsWith('/batch') && id !== 'batchAttributes'
  if (inBatch && body?.atomic !== true) return 'a batch that is not atomic was refused'
  if (responseBody.error === 'not_found' && inBatch && status === 404) return undefined
  if (responseBody.error === 'duplicate_entry' && status === (id === 'patchPerson' ? 400 : 409)) return undefined
  // A person may be held, and the people of a segment are computed behind the writes.
  if (status === 409 && template.endsWith('/erase') && paths.includes('/override_hold')) return undefined
  if (status === 503 && /^\/v1\/(retention-rules|segments\/.*\/members$)/.test(template)) return undefined
  if (status === 412 && (headers['If-Match'] || inBatch)) return undefined
  if (status === 405 && (method !== 'POST' || inBatch || template.endsWith('/upsert'))) return undefined
  // The other person may be missing from the body, a placeholder, the same person, or not merged.
  if (/\/(un)?merge$/.test(template) && paths.every(path => ['', '/from', '/from_id'].includes(path))) return undefined
  if (template.endsWith('/search') && (status === 503 || paths.every(path => ['', '/text', '/cursor'].includes(path))))
    return undefined
  // The tenants of a run stream more answers at a time than a process has connections for.
  if (headers.Accept && status === 503 && responseBody.error === 'operation_failed') return undefined
  // The people to set aside must exist, be several, and all be named by the same kind of identifier.
  if (template.endsWith('/set-aside') && paths.every(path => /^$|^\/(external_)?ids/.test(path))) return undefined
  if (status !== 400 || responseBody.error !== 'invalid_parameter')
    return 'a request that the document allows was refused'
  if (request.body === undefined && !request.path.includes('?') && operation.isBodyRequired) return undefined
  // Each change needs the members of its operation, and either a filter or a list of entities.
  const ofBulk = /^\/(filter$|change(\/|$))/
  if (template.endsWith('/bulk') && paths.every(path => ofBulk.test(path))) return undefined
  // A get has either external identifiers or internal ones.
  if (template.endsWith('/get') && paths.every(path => /^$|^\/(fields|include)\//.test(path))) return undefined
  // Some changes need a member.
  if (method === 'PATCH' && Object.keys(body ?? {}).length === 0 && paths.join() === '') return undefined
  // A source has what its provider needs, and there are 20 at most.
  const ofSource = ['', '/key', '/secret', '/public_key', '/topic_arn']
  if (template.endsWith('/sources') && paths.every(path => ofSource.includes(path))) return undefined
  // A hold is in the future, and a rule names a segment.
  const isLifetime = /\/hold$/.test(template) || template.startsWith('/v1/retention-rules')
  if (isLifetime && paths.every(path => ['/until', '/segment', ''].includes(path))) return undefined
  // An inactive webhook cannot be replayed, and has a limited number of secrets that still sign.
  if (/^(replayWebhook|rotateWebhookSecret)$/.test(id) && paths.every(path => ['', '/until'].includes(path)))
    return undefined
  // A mapping has as many fields as columns, and its owner exists.
  if (id === 'saveImportMapping' && paths.every(path => ['', '/owner'].includes(path))) return undefined
  // An archived attribute has no violations to list.
  if (template.endsWith('/violations') && paths.every(path => path === '')) return undefined
  const strict = /references=strict/.test(headers.Prefer ?? '')
  if (strict && responseBody.details?.every(({ message }) => message === 'names an entity that does not exist'))
    return undefined
  const strictHandling = /handling=strict/.test(headers.Prefer ?? '')
  if (strictHandling && responseBody.details?.every(({ message }) => message.startsWith('is not declared, and no ')))
    return undefined
  // An upsert names a value that its person is recognized by.
  const keys = ['/external_id', '/email', '/mobile_number']
  if (template.endsWith('/upsert') && paths.every(path => keys.includes(path)) && lacksKeys(body ?? {}))
    return undefined
  // An attribute that was declared searchable makes the next search wait, and orders have none.
  const allowed = [
    '/attribute_key',
    '/cardinality',
    '/indexed',
    '/searchable',
    '/channels/0/is_default',
    '/sms_consent',
    // Few of the generated numbers are phone numbers.
    ...(strictHandling ? ['/mobile_number'] : []),
  ]
  // Whether a rule fits depends on the type of its attribute.
  const isRule = (path: string) => /Attributes?$/.test(id) && (ruleNames as string[]).includes(path.split('/')[1]!)
  const ofElement = (path: string) => path.replace(/^\/(items\/\d+|operations\/\d+\/body)(?=\/)/, '')
  const isAllowed = paths.length > 0 && paths.map(ofElement).every(path => allowed.includes(path) || isRule(path))
  return isAllowed ? undefined : 'an unexpected refusal'
}

function lacksKeys({ match = ['external_id'], external_id, email }: Values): boolean {
  const kinds = match as string[]
  return !(kinds.includes('external_id') && external_id) && !(kinds.includes('email') && email)
}

/** Returns how a read of the written data differs from the request; undefined if they agree. */
async function readBack(tenant: TestTenant, plan: Plan, response: RawResponse): Promise<string | undefined> {
  const { id, method, template } = plan.operation
  const { data } = response.body
  if (template.endsWith('/aggregate')) return readAggregate(tenant, plan, response)
  if (template.endsWith('/declare')) return readDeclared(tenant, plan, data)
  if (id === 'batchAttributes') return readAttributes(tenant, plan, data.items)
  if (template.startsWith('/v1/schema')) return method === 'GET' ? undefined : readDefinition(tenant, plan, response)
  if (/^\/v1\/(segments|retention-rules)/.test(template) && (method === 'POST' || method === 'PATCH'))
    return readDefinition(tenant, plan, response)
  if (template.endsWith('/consent-links'))
    return Object.values(data as object).every(url => /\/[puc]\/[\w-]{64}$/.test(url))
      ? undefined
      : 'a link has no token'
  if (/(list|filter|related)$/.test(template)) return findPageMismatch(plan, data)
  if (template.endsWith('/lookup')) return findLookupMismatch(plan, data)
  if (template.endsWith('/batch')) return readBatch(tenant, plan, data)
  if (template.startsWith('/v1/webhooks') && method !== 'DELETE') return readWebhook(tenant, plan, data)
  if (/^\/v1\/(clients|tokens|keys|accounts)/.test(template)) return readAccess(tenant, plan, data)
  if (template.startsWith('/v1/deliverability/sources') && method !== 'GET') return readSources(tenant, plan)
  // Roles, holds, mappings, set-asides and the events of addresses have tests of their own.
  if (template.startsWith('/v1/roles')) return undefined
  if (template.endsWith('/hold') || /\/(deliverability|set-aside)/.test(template)) return undefined
  if (template.startsWith('/v1/import-mappings')) return undefined
  if (id.startsWith('create') || id.startsWith('upsert')) return readCreated(tenant, plan, data, response.status)
  if (method === 'PUT' || method === 'PATCH') return readUpdated(tenant, plan)
  if (id === 'revokeSession') return readSessions(tenant, requestOf(plan, tenant).path)
  if (method === 'DELETE') {
    const deleted = await get(tenant, requestOf(plan, tenant).path)
    return deleted.status === 404 ? undefined : 'the deleted entity still exists'
  }
  return undefined
}

const get = (tenant: TestTenant, path: string) => tenant.sender.send(tenant.token, { method: 'GET', path })

async function readSessions(tenant: TestTenant, path: string): Promise<string | undefined> {
  const { body } = await get(tenant, '/v1/sessions')
  const isListed = (body.data.items as { id: string }[]).some(session => path.endsWith(session.id))
  return isListed ? 'the session has not ended' : undefined
}

async function readSources(tenant: TestTenant, { operation, params, body }: Plan): Promise<string | undefined> {
  const { items } = (await get(tenant, '/v1/deliverability/sources')).body.data as { items: Values[] }
  const key = operation.method === 'POST' ? (trimStrings(body!) as Values).key : params.key
  const isListed = items.some(source => source.key === key)
  return isListed === (operation.method === 'POST') ? undefined : 'the sources differ from what was written'
}

const collectionOf = ({ operation, params }: Plan) =>
  operation.template.startsWith('/v1/people') ? '/v1/people' : `/v1/stacks/${String(params.stack_key)}`

/** Reads each attribute of a batch, as {@link readDefinition} reads one. */
async function readAttributes(tenant: TestTenant, plan: Plan, attributes: Values[]): Promise<string | undefined> {
  const sent = JSON.parse(JSON.stringify(plan.body!.items)) as Values[]
  for (const [index, body] of sent.entries()) {
    const attribute = attributes[index]!
    const headers = { location: `/v1/schema/attributes/${attribute.id}` }
    const problem = await readDefinition(tenant, { ...plan, body }, { headers, body: { data: attribute } })
    if (problem !== undefined) return `items/${index}: ${problem}`
  }
}

async function readDefinition(
  tenant: TestTenant,
  { operation, body }: Plan,
  { body: responseBody, headers }: Pick<RawResponse, 'body' | 'headers'>,
) {
  for (const [key, value] of Object.entries(trimStrings(body ?? {}) as Values)) {
    // The texts of the settings are merged by language.
    if (key === 'page_texts') continue
    const sent = key === 'channels' ? (value as Values[]).map(entry => ({ is_default: false, ...entry })) : value
    const actual =
      key === 'channels' ? responseBody.data.channels.map((entry: Values) => entry) : responseBody.data[key]
    const isEqual = key === 'channels' ? sameChannels(actual, sent as Values[]) : isDeepStrictEqual(actual, sent)
    if (!isEqual) return `${key} reads ${JSON.stringify(actual)}`
  }
  if (operation.method !== 'POST') return undefined
  const read = await get(tenant, headers.location!)
  // The response to a write of a segment may have warnings about its filter. A read has none.
  const { warnings: _, ...written } = responseBody.data
  return isDeepStrictEqual(read.body.data, written) ? undefined : 'the definition does not read back'
}

const webhookWrites = ['createWebhook', 'patchWebhook', 'rotateWebhookSecret']

async function readWebhook(tenant: TestTenant, { operation, body }: Plan, data: Values): Promise<string | undefined> {
  if (operation.id === 'testWebhook') return data.response_status === null ? undefined : 'a request left the machine'
  if (!webhookWrites.includes(operation.id)) return undefined
  const { secret: _, ...shown } = data
  const read = await get(tenant, `/v1/webhooks/${shown.id}`)
  if (!isDeepStrictEqual(read.body.data, shown)) return `the webhook reads ${read.text}`
  // A read shows only the names of the headers, also of those that an earlier request set.
  const { headers: _headers, ...sent } = trimStrings(body ?? {}) as Values
  const different = Object.keys(sent).find(key => !isDeepStrictEqual(shown[key], sent[key]))
  return different && `${different} reads ${JSON.stringify(shown[different])}`
}

async function readAccess(tenant: TestTenant, { operation, params }: Plan, data: Values): Promise<string | undefined> {
  if (operation.id === 'createToken') return String(data.token).split('.').length === 3 ? undefined : 'no token'
  if (operation.id === 'revokeClient') {
    const { body } = await get(tenant, `/v1/clients/${tenant.client_id}`)
    return body.data.revoked_at === null ? `the client ${params.client_id} is not revoked` : undefined
  }
  if (['createAccount', 'inviteAccount'].includes(operation.id)) {
    const { invitation_path: _, ...shown } = data
    const { body } = await get(tenant, '/v1/accounts')
    const isListed = (body.data.items as Values[]).some(account => isDeepStrictEqual(account, shown))
    return isListed ? undefined : 'the list does not have the account'
  }
  if (operation.id !== 'createClient') return undefined
  const { client_secret: _, ...shown } = data
  const read = await get(tenant, `/v1/clients/${shown.client_id}`)
  return isDeepStrictEqual(read.body.data, shown) ? undefined : `the client reads ${read.text}`
}

const sameChannels = (actual: Values[], sent: Values[]) =>
  actual.length === sent.length &&
  actual.every(({ channel, is_default }) => sent.some(one => one.channel === channel && one.is_default === is_default))

const isName = (label: unknown) => typeof label === 'string' && label !== '' && [...label].length <= 200

type Page = { items: Entity[]; has_more: boolean; count?: number }

function findPageMismatch({ body, operation }: Plan, { items, has_more, count }: Page) {
  const size = ((body?.cursor_configuration ?? {}) as { size?: number }).size ?? 50
  if (items.length > size || (has_more && items.length < size)) return 'the page has the wrong size'
  if (body?.count === true && (count === undefined || count < items.length || (has_more && count === items.length)))
    return 'the count is too small'
  if (body?.labels === true && !items.every(({ label }) => isName(label))) return 'an item has no name'
  if (Array.isArray(body?.fields)) return findMemberMismatch(body.fields, items, body.labels === true)
  const ids = items.map(item => item.id ?? item.record_id!)
  if (body?.sort !== undefined) return new Set(ids).size === ids.length ? undefined : 'the page repeats an entity'
  const sent = operation.template.endsWith('/filter') ? body?.sort_direction : body?.sorting_type
  const sorted = sent === 'asc' ? ids.toSorted() : ids.toSorted().reverse()
  return isDeepStrictEqual(ids, [...new Set(sorted)]) ? undefined : 'the page is not in order'
}

type Groups = { groups: { by: unknown[]; measures: unknown[] }[]; evaluated_at?: string }

/** An answer as lines must have the groups of the answer in JSON. Relative times count from the moment of each. */
async function readAggregate(tenant: TestTenant, plan: Plan, response: RawResponse): Promise<string | undefined> {
  if (!plan.headers.Accept) return findAggregateMismatch(plan, response.body.data)
  if (response.headers['content-type'] !== ndjsonType) return 'an answer as lines was asked for'
  const lines = linesOf(response) as Groups['groups']
  const streamed: Groups = { groups: lines.slice(0, -1), ...(lines.at(-1) as object) }
  const { Accept: _, ...headers } = plan.headers
  const asJson = await tenant.sender.send(tenant.token, requestOf({ ...plan, headers }, tenant))
  if (!streamed.evaluated_at && !isDeepStrictEqual(asJson.body.data, streamed)) return `as JSON: ${asJson.text}`
  return findAggregateMismatch(plan, streamed)
}

function findAggregateMismatch({ body }: Plan, { groups }: Groups) {
  const keys = ((body?.group_by ?? []) as unknown[]).length
  const measures = ((body?.measures ?? [0]) as unknown[]).length
  if (keys === 0 && body?.having === undefined && groups.length !== 1)
    return 'an aggregate without groups has not one row'
  if (groups.length > Number(body?.limit ?? groups.length)) return 'an aggregate has more groups than its limit'
  const distinct = new Set(groups.map(({ by }) => JSON.stringify(by)))
  if (distinct.size !== groups.length) return 'a group occurs twice'
  const isWhole = groups.every(group => group.by.length === keys && group.measures.length === measures)
  return isWhole ? undefined : 'a group lacks a value'
}

async function readDeclared(tenant: TestTenant, { body }: Plan, data: Values): Promise<string | undefined> {
  if (body?.dry_run === true) return data.attribute === null ? undefined : 'a dry run returned an attribute'
  const { id } = data.attribute as { id: number }
  const read = await get(tenant, `/v1/schema/attributes/${id}`)
  return isDeepStrictEqual(read.body.data, data.attribute) ? undefined : `the attribute reads ${read.text}`
}

/** An item has members that the fields do not name, or lacks some that they name. */
function findMemberMismatch(fields: string[], items: Values[], isLabeled: boolean): string | undefined {
  const labels = isLabeled ? ['label', 'relationship_labels'] : []
  const named = new Set([...labels, ...fields.map(name => name.replace(/^attribute_values\..*$/s, 'attribute_values'))])
  const other = items.find(({ included: _, ...item }) => new Set(Object.keys(item)).symmetricDifference(named).size > 0)
  return other && `an item has the members ${Object.keys(other)}`
}

function findLookupMismatch({ body }: Plan, { items }: { items: Values[] }): string | undefined {
  if (body?.email === undefined) return undefined
  const fold = (email: unknown) => String(trimStrings(email)).normalize('NFC').toLowerCase()
  const other = items.find(({ email }) => fold(email) !== fold(body.email))
  return other && `a person with the email ${other.email} was found`
}

async function readCreated(
  tenant: TestTenant,
  plan: Plan,
  entity: Entity,
  status: number,
): Promise<string | undefined> {
  const isPerson = entity.id !== undefined
  const id = (entity.id ?? entity.record_id)!
  const knownIds = isPerson ? tenant.people : tenant.records[String(plan.params.stack_key)]!
  if (!knownIds.includes(id)) knownIds.push(id)
  const read = await get(tenant, `${collectionOf(plan)}/internal/${id}`)
  if (!isDeepStrictEqual(read.body.data, entity)) return `the entity reads ${read.text}`
  // A create only ever completes an empty placeholder. An upsert merges with stored values.
  return findMismatch(entity, plan.body ?? {}, plan.operation.id.startsWith('create') && status === 201)
}

async function readUpdated(tenant: TestTenant, plan: Plan): Promise<string | undefined> {
  const body = (trimStrings(plan.body ?? {}) ?? {}) as Values
  const byName = 'external_id' in plan.params
  if (byName && body.external_id === null) return undefined
  const ownName = byName ? paramOf(plan, 'external_id', tenant) : undefined
  const name = encodeURIComponent(String(body.external_id ?? ownName))
  const path = byName ? `${collectionOf(plan)}/${name}` : requestOf({ ...plan, asQuery: false }, tenant).path
  const read = await get(tenant, path)
  if (read.status !== 200) return `the written entity cannot be read: ${read.text}`
  // A rename by internal identifier may link to the old name, which reads as the new one.
  const sent = !byName && body.external_id !== undefined ? withoutLinks(body) : body
  return findMismatch(read.body.data, sent, plan.operation.method === 'PUT' && sent === body, ownName)
}

function withoutLinks(body: Values): Values {
  const {
    referrer: _,
    mixed: __,
    friends: ___,
    buyer: ____,
    bought: _____,
    ...rest
  } = (body.attribute_values ?? {}) as Values
  return { ...body, attribute_values: rest }
}

type BatchItem = { status: number; id: string; error?: string }

async function readBatch(tenant: TestTenant, plan: Plan, { items, failed }: { items: BatchItem[]; failed: number }) {
  const operations = (plan.body?.operations ?? []) as { op: string; body?: Values; external_id?: string }[]
  if (items.length !== operations.length) return 'the number of items differs from the number of operations'
  if (failed !== items.filter(({ status }) => status >= 400).length)
    return '`failed` differs from the number of failed items'
  for (const [index, item] of items.entries()) {
    const { op, body } = operations[index]!
    const strict = plan.headers.Prefer?.includes('strict') ? [400] : []
    if (![200, 201, 404, 405, 409, 412, ...strict].includes(item.status))
      return `item ${index} has status ${item.status}`
    const isLastWrite = items.findLastIndex(other => other.id === item.id) === index && item.status < 300
    if (!isLastWrite || op !== 'create' || operations.some(other => other.op === 'delete')) continue
    const read = await get(tenant, `${collectionOf(plan)}/internal/${item.id}`)
    if (read.status !== 200) return `the entity of item ${index} cannot be read`
    const renames = operations.some(other => other.op === 'patch' && other.body?.external_id !== undefined)
    const mismatch = findMismatch(read.body.data, renames ? withoutLinks(body!) : body!, false)
    if (mismatch) return `item ${index}: ${mismatch}`
  }
  return undefined
}
