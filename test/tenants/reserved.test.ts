import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openApiDocument } from '../../src/app.ts'
import { type Operation, operationsOf, resolved, type Schema } from '../hostile/operations.ts'
import { createSender, type Sender } from '../hostile/sender.ts'
import { digestOf, makeLane, type TestTenant } from '../hostile/test-tenant.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let sender: Sender
let lane: TestTenant
beforeAll(async () => {
  service = await startService()
  sender = createSender(service)
  lane = await makeLane(service, sender)
  await sender.ask(lane.token, { method: 'POST', path: '/v1/people', body: '{"external_id":"ada"}' })
  await sender.ask(lane.token, { method: 'POST', path: '/v1/stacks/orders', body: '{"external_id":"ada"}' })
})
afterAll(async () => {
  sender.close()
  await service.stop()
})

/** What the service decides by itself, or keeps to itself. */
const reserved = [
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

const pathOf = ({ template }: Operation) => template.replace(/\{(\w+)\}/g, (_, name) => addresses[name]!)

/** The smallest body that is right, and one of the objects within it. */
const least: Record<string, Values> = {
  createStack: { key: 'fresh', kind: 'item' },
  createAttribute: { key: 'fresh', owner: 'people', type: 'text' },
  createConsentType: { key: 'fresh', channels: [{ channel: 'sms' }] },
}
function leastOf({ id, template }: Operation): Values {
  if (template.endsWith('/batch')) return { operations: [{ op: 'delete', external_id: 'ada' }] }
  if (template.endsWith('/upsert')) return { external_id: 'ada' }
  if (template.endsWith('/related')) return { target: 'people' }
  return least[id] ?? {}
}

/** Objects within a body that the document describes: where they stand, and their schema. */
const inner: Record<string, (key: string) => [path: string, value: unknown]> = {
  consents: key => [`/consents/0/${key}`, [{ consent_type_id: 1, channel: 'email', state: true, [key]: 'x' }]],
  channels: key => [`/channels/0/${key}`, [{ channel: 'email', [key]: 'x' }]],
  cursor_configuration: key => [`/cursor_configuration/${key}`, { size: 1, [key]: 'x' }],
  operations: key => [`/operations/0/${key}`, [{ op: 'delete', external_id: 'ada', [key]: 'x' }]],
}

function schemaOf(schema: Schema, ...way: string[]): Schema {
  const document = openApiDocument(service)
  return way.reduce(
    (at, key) => resolved(key === '*' ? at.items! : at.properties![key]!, document),
    resolved(schema, document),
  )
}

async function refused(operation: Operation, body: Values | undefined, query: string, path: string) {
  const asked = { method: operation.method, path: pathOf(operation) + query, body: body && JSON.stringify(body) }
  const { status, body: said } = await sender.ask(lane.token, asked)
  const paths = said.details?.map(detail => detail.path)
  expect([operation.id, status, said.error, paths], query).toEqual([operation.id, 400, 'invalid_parameter', [path]])
}

describe('a field that is the service’s to decide', () => {
  test('is refused in every body and query, by its name, and nothing is changed', async () => {
    const operations = operationsOf(openApiDocument(service)).filter(({ body }) => body)
    const before = await digestOf(service, lane.id)
    let tried = 0
    for (const operation of operations) {
      const { properties } = schemaOf(operation.body!)
      for (const key of reserved.filter(key => !Object.hasOwn(properties!, key))) {
        await refused(operation, { ...leastOf(operation), [key]: 'x' }, '', `/${key}`)
        tried += 1
        // Where the body has to hold more, a query that only holds this is refused for that as well.
        if (Object.keys(leastOf(operation)).length > 0) continue
        await refused(operation, undefined, `?${key}=x`, `/${key}`)
        tried += 1
      }
      for (const field of Object.keys(inner).filter(field => Object.hasOwn(properties!, field))) {
        const within =
          field === 'cursor_configuration' ? schemaOf(operation.body!, field) : schemaOf(operation.body!, field, '*')
        for (const key of reserved.filter(key => !Object.hasOwn(within.properties!, key))) {
          const [path, value] = inner[field]!(key)
          await refused(operation, { ...leastOf(operation), [field]: value }, '', path)
          tried += 1
        }
      }
    }
    console.log(`reserved fields: ${tried} requests to ${operations.length} endpoints`)
    expect(await digestOf(service, lane.id)).toBe(before)
  })

  test('is refused in every operation of a batch', async () => {
    for (const path of ['/v1/people', '/v1/stacks/orders'])
      for (const key of reserved) {
        const before = await digestOf(service, lane.id)
        const operations = ['create', 'put', 'patch', 'upsert'].map(op => ({
          op,
          external_id: 'ada',
          body: { [key]: 'x' },
        }))
        const { body } = await sender.ask(lane.token, {
          method: 'POST',
          path: `${path}/batch`,
          body: JSON.stringify({ operations }),
        })
        const items = body.data.items.map((item: { status: number; details: { path: string }[] }) => [
          item.status,
          item.details[0]!.path,
        ])
        expect(items).toEqual(operations.map((_, index) => [400, `/operations/${index}/body/${key}`]))
        expect(await digestOf(service, lane.id)).toBe(before)
      }
  })
})
