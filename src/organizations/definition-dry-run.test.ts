import { beforeEach, describe, expect, it } from 'vitest'
import { readDigest } from '../../test/hostile/test-tenant.ts'
import { readFeed } from '../../test/support/changes.ts'
import { dryRunOf, findDefinitionMismatch } from '../../test/support/dry-runs.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
let attribute: number
const organization = useShop(service)
beforeEach(async () => {
  await organization.send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
  const declared = await organization.send('POST', '/v1/schema/attributes', {
    owner: 'people',
    key: 'city',
    type: 'text',
  })
  attribute = declared.body.data.id
  await organization.send('POST', '/v1/webhooks', { url: 'https://receiver.invalid/', events: ['person.*'] })
})

/** Sends a request as a dry run, which must leave every row of the organization unchanged. */
async function rehearse(method: string, path: string, body?: unknown) {
  const before = await readDigest(service, organization.id)
  const reply = await organization.send(method, dryRunOf(path), body)
  expect(await readDigest(service, organization.id)).toBe(before)
  return reply
}

describe('a dry run of a write of definitions', () => {
  it.each([
    ['POST', '/v1/schema/stacks', { key: 'visits', kind: 'event' }, true],
    ['PATCH', '/v1/schema/stacks/orders', { name: 'Orders' }, false],
    ['PATCH', '/v1/schema/stacks/orders', { name: 'orders' }, false],
    ['POST', '/v1/schema/attributes', { owner: 'orders', key: 'buyer', type: 'person' }, true],
    ['PATCH', '/v1/schema/attributes/{id}', { indexed: true }, false],
    ['PATCH', '/v1/schema/attributes/{id}', { state: 'archived' }, false],
    ['POST', '/v1/schema/consent-types', { key: 'surveys', channels: [{ channel: 'email' }] }, true],
    ['PATCH', '/v1/schema/consent-types/1', { name: 'Marketing by us' }, false],
    ['POST', '/v1/schema/consent-types/1/texts', { language: 'en', text: 'May we write to you?' }, false],
    ['PATCH', '/v1/schema/settings', { display_name: 'Shop' }, true],
    ['POST', '/v1/webhooks', { url: 'https://other.invalid/', events: ['record.*'] }, true],
    ['PATCH', '/v1/webhooks/1', { active: false }, false],
    ['POST', '/v1/webhooks/1/rotate', undefined, false],
    ['DELETE', '/v1/webhooks/1', undefined, false],
  ] as const)('%s %s with %j returns the entry that the log gets', async (method, path, body, isNew) => {
    const address = path.replace('{id}', `${attribute}`)
    const { head } = await readFeed(organization)
    const { status, body: answer } = await rehearse(method, address, body)
    expect([status, answer.data?.dry_run]).toEqual([200, true])
    const real = await organization.send(method, address, body)
    expect(real.status).toBeLessThan(300)
    const { items } = await readFeed(organization, `after=${head}`)
    expect(findDefinitionMismatch(answer.data, items)).toBeUndefined()
    if (items.length > 0) expect(answer.data.changes[0].id).toEqual(isNew ? null : items[0]!.id)
  })

  it.each([
    ['POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' }],
    ['PATCH', '/v1/schema/stacks/nothing', { name: 'x' }],
    ['POST', '/v1/schema/attributes', { owner: 'people', key: 'city', type: 'text' }],
    ['POST', '/v1/schema/attributes', { owner: 'nothing', key: 'city', type: 'text' }],
    ['PATCH', '/v1/schema/settings', { privacy_url: 'http://shop.example/' }],
    ['POST', '/v1/schema/consent-types/99/texts', { language: 'en', text: 'May we?' }],
    ['DELETE', '/v1/webhooks/99', undefined],
  ] as const)('%s %s with %j is refused as the write is', async (method, path, body) => {
    const dry = await rehearse(method, path, body)
    const real = await organization.send(method, path, body)
    const { request_id: _, ...refusal } = real.body
    expect(real.status).toBeGreaterThanOrEqual(400)
    expect([dry.status, dry.body]).toMatchObject([real.status, refusal])
  })
})
