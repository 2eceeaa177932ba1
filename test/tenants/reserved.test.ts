import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openApiDocument } from '../../src/process/app.ts'
import { type Operation, operationsOf, resolveSchema, type Schema } from '../hostile/operations.ts'
import { createSender, type Sender } from '../hostile/sender.ts'
import { createTestTenant, readDigest, type TestTenant } from '../hostile/test-tenant.ts'
import { useOwnService } from '../support/service.ts'

const service = useOwnService()
let sender: Sender
let tenant: TestTenant
let document: ReturnType<typeof openApiDocument>
beforeAll(async () => {
  document = openApiDocument(service)
  sender = createSender(service)
  tenant = await createTestTenant(service, sender)
  await sender.send(tenant.token, { method: 'POST', path: '/v1/people', body: '{"external_id":"ada"}' })
  await sender.send(tenant.token, { method: 'POST', path: '/v1/stacks/orders', body: '{"external_id":"ada"}' })
})
afterAll(async () => {
  sender.close()
})

/** Fields that only the service sets, and internal ones. */
const reservedFields = [
  'organization_id',
  'organization',
  'org',
  'id',
  'record_id',
  'stack_id',
  'stack_key',
  'version',
  'state',
  'active',
  'created_at',
  'updated_at',
  'answers',
  'attributes',
  'source',
  'answered_at',
  'actor',
  'request_id',
  'schema_version',
  'index_id',
  'index_state',
  'scope',
  'constructor',
]

type Values = Record<string, unknown>

const addresses: Record<string, string> = { external_id: 'ada', stack_key: 'orders', id: '1', uuid: '', record_id: '' }
addresses.uuid = '01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f'
addresses.record_id = 'f'.repeat(24)
addresses.consent_type_id = '1'
addresses.channel = 'email'
addresses.segment_key = 'in_rome'
addresses.account_id = addresses.uuid
addresses.role_key = 'reader'
addresses.client_id = 'nobody.Zm9vYmFyYmF6cXV4'

const pathOf = ({ template }: Operation) => template.replace(/\{(\w+)\}/g, (_, name) => addresses[name]!)

/** The smallest valid body, by operation. */
const minimalBodies: Record<string, Values> = {
  createStack: { key: 'fresh', kind: 'item' },
  createAttribute: { key: 'fresh', owner: 'people', type: 'text' },
  batchAttributes: { items: [{ key: 'fresh', owner: 'people', type: 'text' }] },
  declareObservedKey: { key: 'fresh', owner: 'people', type: 'text', dry_run: true },
  createConsentType: { key: 'fresh', channels: [{ channel: 'sms' }] },
  addConsentText: { language: 'en', text: 'x' },
  createRole: { key: 'fresh', scopes: ['people:read'] },
  createSegment: { key: 'fresh', filter: {} },
  createRetentionRule: { key: 'fresh', segment: 'in_rome', after_days: 1, action: 'erase' },
  recordDeliveryEvents: { events: [{ channel: 'email', address: 'ada@example.com', type: 'delivered' }] },
  createDeliverabilitySource: { key: 'fresh', provider: 'postmark' },
  createWebhook: { url: 'https://receiver.invalid/', events: ['person.*'] },
  replayWebhook: { after: 0 },
  createClient: { name: 'x', scopes: ['people:read'] },
  createAccount: { name: 'x', role: null },
  updateAccount: { state: 'disabled' },
  createToken: { scopes: ['people:read'], expires_in: 60 },
  lookUpPeople: { external_id: 'ada' },
  changePeopleInBulk: { filter: {}, change: { op: 'delete' }, dry_run: true },
  changeRecordsInBulk: { filter: {}, change: { op: 'delete' }, dry_run: true },
  saveImportMapping: { owner: 'people', header: ['Nr'], fields: [null] },
  getPeople: { external_ids: ['ada'] },
  getRecords: { external_ids: ['ada'] },
  searchPeople: { text: 'ada' },
  searchRecords: { text: 'ada' },
  search: { text: 'ada' },
  countConsents: { interval: 'day' },
  decideContacts: { external_ids: ['ada'], consent_type_id: 1, channel: 'email' },
  decideContact: { consent_type_id: 1, channel: 'email' },
  decideContactById: { consent_type_id: 1, channel: 'email' },
}
function minimalBodyOf({ id, template }: Operation): Values {
  const body = minimalBodies[id]
  if (body) return body
  if (template.endsWith('/batch')) return { operations: [{ op: 'delete', external_id: 'ada' }] }
  if (template.endsWith('/upsert')) return { external_id: 'ada' }
  if (template.endsWith('/related')) return { target: 'people' }
  if (/\/(erase|hold)$/.test(template)) return { reason: 'x' }
  return {}
}

/** By field of a body, a nested object with the given unknown key, and the path of that key. */
const nestedObjects: Record<string, (key: string) => [path: string, value: unknown]> = {
  consents: key => [`/consents/0/${key}`, [{ consent_type_id: 1, channel: 'email', state: true, [key]: 'x' }]],
  channels: key => [`/channels/0/${key}`, [{ channel: 'email', [key]: 'x' }]],
  cursor_configuration: key => [`/cursor_configuration/${key}`, { size: 1, [key]: 'x' }],
  measures: key => [`/measures/0/${key}`, [{ op: 'count', [key]: 'x' }]],
  sort: key => [`/sort/${key}`, { field: 'external_id', [key]: 'x' }],
  having: key => [`/having/0/${key}`, [{ measure: 0, $gte: 1, [key]: 'x' }]],
  events: key => [`/events/0/${key}`, [{ channel: 'email', address: 'a@example.com', type: 'delivered', [key]: 'x' }]],
  items: key => [`/items/0/${key}`, [{ key: 'fresh', owner: 'people', type: 'text', [key]: 'x' }]],
  operations: key => [`/operations/0/${key}`, [{ op: 'delete', external_id: 'ada', [key]: 'x' }]],
}

/** As in {@link nestedObjects}, for the `sort` of an aggregate, which is a list. */
const sortOfGroups = (key: string): [path: string, value: unknown] => [`/sort/0/${key}`, [{ measure: 0, [key]: 'x' }]]

function schemaOf(schema: Schema, ...keys: string[]): Schema {
  return keys.reduce(
    (at, key) => resolveSchema(key === '*' ? at.items! : at.properties![key]!, document),
    resolveSchema(schema, document),
  )
}

async function expectRefused(operation: Operation, body: Values | undefined, query: string, path: string) {
  const request = { method: operation.method, path: pathOf(operation) + query, body: body && JSON.stringify(body) }
  const { status, body: responseBody } = await sender.send(tenant.token, request)
  const paths = responseBody.details?.map(detail => detail.path)
  expect([operation.id, status, responseBody.error, paths], query).toEqual([
    operation.id,
    400,
    'invalid_parameter',
    [path],
  ])
}

describe('a field that only the service sets', () => {
  it('is refused by name in every body and query, and changes no stored data', async () => {
    const operations = operationsOf(document).filter(({ body }) => body)
    const digestBefore = await readDigest(service, tenant.id)
    let requestCount = 0
    for (const operation of operations) {
      const { properties } = schemaOf(operation.body!)
      for (const key of reservedFields.filter(key => !Object.hasOwn(properties!, key))) {
        await expectRefused(operation, { ...minimalBodyOf(operation), [key]: 'x' }, '', `/${key}`)
        requestCount += 1
        // If the body has required fields, a query with only this key is refused for those as well.
        if (Object.keys(minimalBodyOf(operation)).length > 0) continue
        await expectRefused(operation, undefined, `?${key}=x`, `/${key}`)
        requestCount += 1
      }
      for (const field of Object.keys(nestedObjects).filter(field => Object.hasOwn(properties!, field))) {
        const { items } = schemaOf(operation.body!, field)
        const nestedSchema = items ? schemaOf(operation.body!, field, '*') : schemaOf(operation.body!, field)
        // The events of a webhook are texts.
        const names = nestedSchema.properties
        for (const key of names ? reservedFields.filter(key => !Object.hasOwn(names, key)) : []) {
          const nested = field === 'sort' && items ? sortOfGroups : nestedObjects[field]!
          const [path, value] = nested(key)
          await expectRefused(operation, { ...minimalBodyOf(operation), [field]: value }, '', path)
          requestCount += 1
        }
      }
    }
    console.log(`reserved fields: ${requestCount} requests to ${operations.length} endpoints`)
    expect(await readDigest(service, tenant.id)).toBe(digestBefore)
  })

  it('is refused in every operation of a batch', async () => {
    for (const path of ['/v1/people', '/v1/stacks/orders'])
      for (const key of reservedFields) {
        const digestBefore = await readDigest(service, tenant.id)
        const operations = ['create', 'put', 'patch', 'upsert'].map(op => ({
          op,
          external_id: 'ada',
          body: { [key]: 'x' },
        }))
        const { body } = await sender.send(tenant.token, {
          method: 'POST',
          path: `${path}/batch`,
          body: JSON.stringify({ operations }),
        })
        const items = body.data.items.map((item: { status: number; details: { path: string }[] }) => [
          item.status,
          item.details[0]!.path,
        ])
        expect(items).toEqual(operations.map((_, index) => [400, `/operations/${index}/body/${key}`]))
        expect(await readDigest(service, tenant.id)).toBe(digestBefore)
      }
  })
})
