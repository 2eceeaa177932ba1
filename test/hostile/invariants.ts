import { isDeepStrictEqual } from 'node:util'
import { misread } from './reading.ts'
import { askOf, type Plan, paramOf } from './requests.ts'
import type { Answer, Ask } from './sender.ts'
import { headOf, type TestTenant } from './test-tenant.ts'
import { trimmed } from './texts.ts'

type Values = Record<string, unknown>
type Entity = { id?: string; record_id?: string; external_id: string | null } & Values

/** Throws an Error that tells the request beside what is wrong. */
export function broken(asked: Ask, answer: Answer, what: string): never {
  const request = `${asked.method} ${asked.path} ${JSON.stringify(asked.headers)}\n${String(asked.body ?? '').slice(0, 2_000)}`
  throw new Error(`${what}\n${request}\n→ ${answer.status} ${answer.text.slice(0, 2_000)}`)
}

/** Sends a request that the document allows, and holds the answer and what is stored afterwards to the laws. */
export async function obey(lane: TestTenant, plan: Plan): Promise<Answer> {
  const asked = askOf(plan, lane)
  const token = plan.operation.scope === undefined ? '' : lane.token
  const answer = await lane.sender.ask(token, asked)
  const head = await headOf(lane)
  const fail = (what: string) => broken(asked, answer, what)
  if (answer.status >= 400) {
    if (head !== lane.head) fail('a refused request changed something')
    const why = unexpected(plan, asked, answer)
    if (why) fail(why)
    return answer
  }
  const reads = plan.operation.method === 'GET' || /(list|filter|related)$/.test(plan.operation.template)
  if (reads && head !== lane.head) fail('a read changed something')
  lane.head = head
  const wrong = await readBack(lane, plan, answer)
  if (wrong) fail(wrong)
  return answer
}

/** Why a refusal is none that the stored data can be the reason of; undefined where it may be. */
function unexpected(
  { operation, headers, body }: Plan,
  asked: Ask,
  { status, body: said }: Answer,
): string | undefined {
  const { id, method, params, template } = operation
  const paths = said.details?.map(({ path }) => path) ?? []
  if (said.error === 'not_found' && params.length > 0) {
    const contract = id === 'patchPerson' ? 500 : 404
    if (status === contract) return undefined
  }
  const inBatch = template.endsWith('/batch')
  if (inBatch && body?.atomic !== true) return 'a batch that is not atomic was refused'
  if (said.error === 'not_found' && inBatch && status === 404) return undefined
  if (said.error === 'duplicate_entry' && status === (id === 'patchPerson' ? 400 : 409)) return undefined
  if (status === 412 && (headers['If-Match'] || inBatch)) return undefined
  if (status === 405 && (method !== 'POST' || inBatch || template.endsWith('/upsert'))) return undefined
  if (status !== 400 || said.error !== 'invalid_parameter') return 'a request that the document allows was refused'
  if (asked.body === undefined && !asked.path.includes('?') && operation.bodyRequired) return undefined
  const strict = /references=strict/.test(headers.Prefer ?? '')
  if (strict && said.details?.every(({ message }) => message === 'names an entity that does not exist'))
    return undefined
  const careful = /handling=strict/.test(headers.Prefer ?? '')
  if (careful && said.details?.every(({ message }) => message.startsWith('is not declared, and no '))) return undefined
  const allowed = ['/attribute_key', '/cardinality', '/indexed', '/channels/0/is_default', '/sms_consent']
  return paths.length > 0 && paths.every(path => allowed.includes(path)) ? undefined : 'an unexpected refusal'
}

/** What is wrong with what was stored; undefined where it reads back as it was given. */
async function readBack(lane: TestTenant, plan: Plan, answer: Answer): Promise<string | undefined> {
  const { id, method, template } = plan.operation
  const { data } = answer.body
  if (template.startsWith('/v1/schema')) return method === 'GET' ? undefined : readDefinition(lane, plan, answer)
  if (/(list|filter|related)$/.test(template)) return misplaced(plan, data)
  if (template.endsWith('/batch')) return readBatch(lane, plan, data)
  if (id.startsWith('create') || id.startsWith('upsert')) return readCreated(lane, plan, data, answer.status)
  if (method === 'PUT' || method === 'PATCH') return readUpdated(lane, plan)
  if (method === 'DELETE') {
    const gone = await get(lane, askOf(plan, lane).path)
    return gone.status === 404 ? undefined : 'what was deleted is still there'
  }
  return undefined
}

const get = (lane: TestTenant, path: string) => lane.sender.ask(lane.token, { method: 'GET', path })

const collectionOf = ({ operation, params }: Plan) =>
  operation.template.startsWith('/v1/people') ? '/v1/people' : `/v1/stacks/${String(params.stack_key)}`

async function readDefinition(lane: TestTenant, { operation, body }: Plan, { body: said, headers }: Answer) {
  for (const [key, value] of Object.entries(trimmed(body ?? {}) as Values)) {
    const given = key === 'channels' ? (value as Values[]).map(entry => ({ is_default: false, ...entry })) : value
    const shown = key === 'channels' ? said.data.channels.map((entry: Values) => entry) : said.data[key]
    const equal = key === 'channels' ? sameChannels(shown, given as Values[]) : isDeepStrictEqual(shown, given)
    if (!equal) return `${key} reads ${JSON.stringify(shown)}`
  }
  if (operation.method !== 'POST') return undefined
  const read = await get(lane, headers.location!)
  return isDeepStrictEqual(read.body.data, said.data) ? undefined : 'the definition does not read back'
}

const sameChannels = (shown: Values[], given: Values[]) =>
  shown.length === given.length &&
  shown.every(({ channel, is_default }) => given.some(one => one.channel === channel && one.is_default === is_default))

function misplaced({ body, operation }: Plan, { items, has_more }: { items: Entity[]; has_more: boolean }) {
  const size = ((body?.cursor_configuration ?? {}) as { size?: number }).size ?? 50
  if (items.length > size || (has_more && items.length < size)) return 'the page has the wrong size'
  const ids = items.map(item => item.id ?? item.record_id!)
  const given = operation.template.endsWith('/filter') ? body?.sort_direction : body?.sorting_type
  const sorted = given === 'asc' ? ids.toSorted() : ids.toSorted().reverse()
  return isDeepStrictEqual(ids, [...new Set(sorted)]) ? undefined : 'the page is not in order'
}

async function readCreated(lane: TestTenant, plan: Plan, entity: Entity, status: number): Promise<string | undefined> {
  const ofPeople = entity.id !== undefined
  const id = (entity.id ?? entity.record_id)!
  const made = ofPeople ? lane.people : lane.records[String(plan.params.stack_key)]!
  if (!made.includes(id)) made.push(id)
  const read = await get(lane, `${collectionOf(plan)}/internal/${id}`)
  if (!isDeepStrictEqual(read.body.data, entity)) return `it reads ${read.text}`
  // A create that completes a placeholder finds it empty; an upsert merges.
  return misread(entity, plan.body ?? {}, plan.operation.id.startsWith('create') && status === 201)
}

async function readUpdated(lane: TestTenant, plan: Plan): Promise<string | undefined> {
  const body = (trimmed(plan.body ?? {}) ?? {}) as Values
  const byName = 'external_id' in plan.params
  if (byName && body.external_id === null) return undefined
  const ownName = byName ? paramOf(plan, 'external_id', lane) : undefined
  const name = encodeURIComponent(String(body.external_id ?? ownName))
  const path = byName ? `${collectionOf(plan)}/${name}` : askOf({ ...plan, asQuery: false }, lane).path
  const read = await get(lane, path)
  if (read.status !== 200) return `what was written is not there: ${read.text}`
  // Who renames by internal identifier may link to the name that went, which is shown as the new one.
  const given = !byName && body.external_id !== undefined ? withoutLinks(body) : body
  return misread(read.body.data, given, plan.operation.method === 'PUT' && given === body, ownName)
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

type Item = { status: number; id: string; error?: string }

async function readBatch(lane: TestTenant, plan: Plan, { items, failed }: { items: Item[]; failed: number }) {
  const operations = (plan.body?.operations ?? []) as { op: string; body?: Values; external_id?: string }[]
  if (items.length !== operations.length) return 'not every operation has its item'
  if (failed !== items.filter(({ status }) => status >= 400).length) return '`failed` is not the number of failures'
  for (const [index, item] of items.entries()) {
    const { op, body } = operations[index]!
    const strict = plan.headers.Prefer?.includes('strict') ? [400] : []
    if (![200, 201, 404, 405, 409, 412, ...strict].includes(item.status)) return `item ${index} is ${item.status}`
    const last = items.findLastIndex(other => other.id === item.id) === index && item.status < 300
    if (!last || op !== 'create' || operations.some(other => other.op === 'delete')) continue
    const read = await get(lane, `${collectionOf(plan)}/internal/${item.id}`)
    if (read.status !== 200) return `item ${index} is not there`
    const renames = operations.some(other => other.op === 'patch' && other.body?.external_id !== undefined)
    const wrong = misread(read.body.data, renames ? withoutLinks(body!) : body!, false)
    if (wrong) return `item ${index}: ${wrong}`
  }
  return undefined
}
