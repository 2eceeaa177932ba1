import { beforeAll, describe, expect, it } from 'vitest'
import { ndjsonHeaders } from '../../test/support/lines.ts'
import { useService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'
import { openApiDocument } from '../process/app.ts'
import { loadConfig } from '../process/config.ts'
import { profileFlags, profileTexts } from '../values/profile-fields.ts'
import type { JsonSchema } from './shapes.ts'

const document = openApiDocument({ config: loadConfig({}) })

type Parameter = {
  name: string
  in: string
  required?: boolean
  example?: unknown
  examples?: unknown
  schema: JsonSchema
}
type Media = { example?: unknown; examples?: unknown }
type Prefilled = { address: string; method: string; path: string; parameters: Parameter[]; media?: [string, Media] }

const at = (reference: string) =>
  reference
    .slice(2)
    .split('/')
    .reduce((part, key) => (part as Record<string, unknown>)[key]!, document as unknown)

/** The inputs that the page at /docs/api fills in for each operation when "Try it out" is pressed. */
const operations: Prefilled[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => {
    const { parameters = [], requestBody } = operation as {
      parameters?: { $ref: string }[]
      requestBody?: { content: Record<string, Media> }
    }
    const media = requestBody && Object.entries(requestBody.content)[0]
    return {
      address: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      parameters: parameters.map(({ $ref }) => at($ref) as Parameter),
      ...(media && { media }),
    }
  }),
)
const writes = operations.filter(
  ({ address, media }) =>
    media &&
    !/\/(list|filter|related|export|lookup|duplicates|aggregate|search)$|^POST \/oauth|\/in\/\{key\}$/.test(address),
)

/** All keys of a value at any depth, with their values. */
function entriesOf(value: unknown): [string, unknown][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [[key, inner] as [string, unknown], ...entriesOf(inner)])
}

describe('the input that the page at /docs/api fills in', () => {
  it('contains no parameter value, except an If-Match that no entity has', () => {
    for (const { address, parameters } of operations)
      for (const { name, in: place, required = false, example, examples, schema } of parameters) {
        // The page preselects no value for an optional parameter.
        const choices = required ? schema.enum : undefined
        const filled = [example, examples, schema.default, schema.example, schema.examples, choices]
        const allowed = address.startsWith('PUT ') && name === 'If-Match' ? ['"0"'] : []
        expect([address, place, name, ...filled.filter(value => value !== undefined)]).toEqual([
          address,
          place,
          name,
          ...allowed,
        ])
      }
  })

  it('is an explicit example for every body of a write, because the page would otherwise generate one', () => {
    expect(writes.length).toBeGreaterThan(15)
    for (const { address, media } of writes) expect([address, media![1].example]).not.toEqual([address, undefined])
  })

  it('contains no identifier, name, address or consent in a body of a write', () => {
    const personal = [...profileTexts, ...profileFlags, 'consents', 'id', 'record_id', 'state', 'mandatory']
    for (const { address, media } of writes)
      for (const [key, value] of entriesOf(media![1].example)) {
        // The `language` of a text is not personal data.
        if (!address.endsWith('/texts')) expect(personal, address).not.toContain(key)
        if (key === 'external_id') expect([address, value]).toEqual([address, 'your-external-id'])
        if (key === 'op') expect(['upsert', 'patch'], address).toContain(value)
        if (key === 'attribute_values') expect([address, value]).toEqual([address, {}])
        if (key === 'is_default') expect([address, value]).toEqual([address, false])
      }
  })
})

describe('a prefilled write to existing entities', () => {
  const service = useService()
  let existing: Record<string, string>
  const shop = useSharedShop(service, { key: 'things', kind: 'item' })
  beforeAll(async () => {
    const { send } = shop
    const consents = [{ consent_type_id: 1, channel: 'sms', state: false }]
    const values = { attribute_values: { city: 'Rome' } }
    const person = await send('POST', '/v1/people', { external_id: 'mary', first_name: 'Mary', consents, ...values })
    const record = await send('POST', '/v1/stacks/things', { external_id: 'mary', ...values })
    const imported = await send('POST', '/v1/people/import', '{"external_id":"ann"}\n', ndjsonHeaders)
    const attribute = await send('POST', '/v1/schema/attributes', { owner: 'people', key: 'shoe', type: 'number' })
    await send('POST', '/v1/webhooks', { url: 'https://receiver.example/', events: ['person.*'] })
    for (const key of ['italian', 'your_segment'])
      await send('POST', '/v1/segments', { key, filter: { language: 'it' } })
    const account = await send('POST', '/v1/accounts', { name: 'Ada', role: null })
    await send('POST', '/v1/roles', { key: 'reader', scopes: ['people:read'] })
    const cancelled = await send('POST', '/v1/people/bulk', { filter: {}, change: { op: 'patch', body: {} } })
    await send('POST', `/v1/jobs/${cancelled.body.data.id}/cancel`)
    existing = {
      external_id: 'mary',
      uuid: person.body.data.id,
      record_id: record.body.data.record_id,
      stack_key: 'things',
      segment_key: 'italian',
      role_key: 'reader',
      account_id: account.body.data.id,
      attribute_id: String(attribute.body.data.id),
      consent_type_id: '1',
      import_id: imported.headers.get('X-Request-Id')!,
      job_id: cancelled.headers.get('X-Request-Id')!,
    }
  })

  const snapshot = async () => {
    const reads = [
      '/v1/people/mary',
      '/v1/stacks/things/mary',
      '/v1/schema/consent-types/1',
      '/v1/schema/stacks/things',
      '/v1/webhooks/1',
      '/v1/segments/italian',
      '/v1/roles/reader',
    ]
    const answers = []
    for (const path of [...reads, `/v1/schema/attributes/${existing.attribute_id}`])
      answers.push((await shop.send('GET', path)).body.data)
    const [person, record, { text_versions, updated_at, ...type }, stack, { backlog, ...webhook }, ...others] = answers
    // A new consent type appears in every read of a person, with its default.
    const isFirstType = ({ consent_type_id }: { consent_type_id: number }) => consent_type_id === 1
    // A new text changes a count of its consent type, and a change the backlog of a webhook.
    return [{ ...person, consents: person.consents.filter(isFirstType) }, record, type, stack, webhook, ...others]
  }

  it.each(writes.map(write => [write.address, write] as const))('changes nothing: %s', async (_, write) => {
    const { method, path, parameters, media } = write
    const before = await snapshot()
    const owner = path.includes('/attributes/') ? 'attribute_id' : 'consent_type_id'
    const address = path.replace(/\{(\w+)\}/g, (_whole, name: string) => {
      const value = existing[name === 'id' ? owner : name]
      expect(value, name).toBeDefined()
      return value!
    })
    const headers = Object.fromEntries(
      parameters.filter(each => each.example !== undefined).map(({ name, example }) => [name, String(example)]),
    )
    const { status } = await shop.send(method, address, media![1].example, { ...headers, 'Content-Type': media![0] })
    // A merge names another person, who does not exist.
    const isMerge = /\/((un)?merge|set-aside)$/.test(path)
    const isVersioned = method === 'PUT' && /^\/v1\/(people|stacks)/.test(path)
    expect(isVersioned ? [412] : isMerge ? [404] : [200, 201, 202]).toContain(status)
    expect(await snapshot()).toEqual(before)
  })
})
