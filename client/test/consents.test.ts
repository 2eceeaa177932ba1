import { describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const { client } = useShop(service)

const email = 'ada@example.com'
const marketing = { consent_type_id: 1, channel: 'email' } as const
const grant = { ...marketing, state: true, method: 'web_form', collected_at: '2025-06-01T10:00:00.000Z' } as const

describe('client.consents', () => {
  it('reads consent histories by pages, reduced to a purpose, and by both identifiers', async () => {
    const { id } = await client.people.create({ external_id: 'a/b', email, consents: [grant] })
    await client.people.patch('a/b', { email_consent: false })
    await client.people.patch('a/b', { sms_consent: false })
    const { items, has_more } = await client.consents.history('a/b').page()
    expect([items.map(({ channel, state }) => [channel, state]), has_more]).toEqual([
      [
        ['sms', false],
        ['email', false],
        ['email', true],
      ],
      false,
    ])
    expect(items[2]).toMatchObject({ method: 'web_form', collected_at: '2025-06-01T10:00:00.000Z', source: null })
    expect(await client.consents.history({ id }).page()).toEqual({ items, has_more, next: null })
    expect(await client.consents.history('a/b', marketing).page()).toEqual({
      items: items.slice(1),
      has_more: false,
      next: null,
    })
    const first = await client.consents.history('a/b', { size: 2 }).page()
    expect(first).toEqual({ items: items.slice(0, 2), has_more: true, next: String(first.items.at(-1)!.version) })
    expect(await client.consents.history({ id }, { after: first.next! }).page()).toEqual({
      items: items.slice(2),
      has_more: false,
      next: null,
    })
    await expect(client.consents.history('nobody').page()).rejects.toMatchObject({
      code: 'not_found',
      missing: 'entity',
    })
  })

  it('tells whether one person may be written to, now and as at a time', async () => {
    const { id, created_at } = await client.people.create({ external_id: 'ada', email, consents: [grant] })
    const decision = await client.consents.contactable('ada', marketing)
    expect(decision).toMatchObject({ allowed: true, reasons: [{ rule: 'answer', method: 'web_form', version: 1 }] })
    expect(await client.consents.contactable({ id }, marketing)).toEqual(decision)
    while (Date.now() <= Date.parse(created_at)) await new Promise(setImmediate)
    await client.people.patch('ada', { email_consent: false })
    expect((await client.consents.contactable('ada', marketing)).allowed).toBe(false)
    for (const at of [created_at, new Date(created_at)]) {
      expect(await client.consents.contactable('ada', marketing, { at })).toEqual(decision)
      expect(await client.consents.contactable({ id }, marketing, { at })).toEqual(decision)
    }
    await expect(client.consents.contactable('nobody', marketing)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('tells which of many people may be written to', async () => {
    await client.people.create({ external_id: 'ada', email, consents: [grant] })
    await client.people.create({ external_id: 'bob' })
    const { items, sequence } = await client.consents.contactableMany(['bob', 'ada', 'nobody'], marketing)
    expect(items.map(({ external_id, allowed }) => [external_id, allowed])).toEqual([
      ['bob', false],
      ['ada', true],
      ['nobody', false],
    ])
    expect(items.map(({ reasons }) => reasons.map(({ rule }) => rule))).toEqual([
      ['no_address', 'default'],
      ['answer'],
      ['not_found'],
    ])
    expect(sequence).toBe((await client.changes.list().page()).head)
  })
})
