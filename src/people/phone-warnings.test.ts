import { describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const shop = useShop(service, {
  key: 'news',
  name: 'News',
  channels: [{ channel: 'sms', is_default: false, double_opt_in: false }],
} as never)

const strict = { Prefer: 'handling=strict' }
const isDescribed = '/mobile_number is not a phone number with its country'

describe('a mobile number that is none', () => {
  it('is stored as sent with a warning, also in a dry run and a batch, and refused under handling=strict', async () => {
    for (const mobile_number of ['n/a', '333 1234567', 'private +49 1512 3456789, ask for Anna']) {
      const dry = await shop.send('POST', '/v1/people?dry_run=true', { mobile_number })
      const created = await shop.send('POST', '/v1/people', { mobile_number })
      for (const reply of [dry, created]) expect(reply.headers.get('X-Kith-Warning')).toContain(isDescribed)
      expect([created.status, created.body.data.mobile_number]).toEqual([201, mobile_number])
      const head = await shop.head()
      const refused = await shop.send('POST', '/v1/people', { mobile_number }, strict)
      expect([refused.status, refused.body.details?.map(({ path }) => path)]).toEqual([400, ['/mobile_number']])
      expect(await shop.head()).toBe(head)
      const operations = [{ op: 'create', body: { mobile_number } }]
      const { items } = await shop.ok('POST', '/v1/people/batch', { operations })
      expect(items).toMatchObject([{ status: 201, warnings: [{ path: '/mobile_number' }] }])
      const lines = linesFrom([{ external_id: 'line', mobile_number }])
      const imported = await importLines(shop, '/v1/people/import', lines, strict)
      expect(imported.counts).toMatchObject({ created: 0, failed: 1 })
    }
  })

  it('is counted in an import, and a dry run under handling=strict names its lines', async () => {
    const lines = linesFrom([
      { external_id: 'ada', mobile_number: 'n/a' },
      { external_id: 'bob', mobile_number: '+39 333 1234567' },
      { external_id: 'cleo', mobile_number: 'ask' },
    ])
    const named = await importLines(shop, '/v1/people/import?dry_run=true', lines, strict)
    expect(named.refused).toMatchObject([{ line: 1 }, { line: 3 }])
    const { counts } = await importLines(shop, '/v1/people/import', lines)
    expect(counts).toMatchObject({ created: 3, failed: 0, warnings: 2 })
    expect((await importLines(shop, '/v1/people/import', lines)).counts).not.toHaveProperty('warnings')
  })

  it('causes no warning if the number and its prefix come in two writes, or with an extension, or stay as they are', async () => {
    await shop.ok('POST', '/v1/people', { external_id: 'ada', mobile_prefix: '39' })
    const patch = (body: object) => shop.send('PATCH', '/v1/people/ada', body)
    expect((await patch({ mobile_number: '333 1234567' })).headers.get('X-Kith-Warning')).toBeNull()
    expect((await patch({ mobile_prefix: null })).headers.get('X-Kith-Warning')).toContain(isDescribed)
    expect((await patch({ first_name: 'Ada' })).headers.get('X-Kith-Warning')).toBeNull()
    expect((await patch({ mobile_number: '+1 650 253 0000 ext. 12' })).headers.get('X-Kith-Warning')).toBeNull()
  })

  it.each(['n/a', '333 1234567', '+1 650 253 0000 ext. 12'])('is no address: %s', async mobile_number => {
    const { consent_types } = await shop.ok('GET', '/v1/schema')
    const question = {
      consent_type_id: consent_types.find(({ key }: { key: string }) => key === 'news').id,
      channel: 'sms',
    }
    const consents = [{ ...question, state: true }]
    await shop.ok('POST', '/v1/people', { external_id: 'ada', mobile_number, consents })
    const at = new Date().toISOString()
    const asked = [
      await shop.ok('POST', '/v1/people/ada/contactable', question),
      await shop.ok('POST', '/v1/people/ada/contactable', { ...question, at }),
      (await shop.ok('POST', '/v1/people/contactable', { ...question, external_ids: ['ada'] })).items[0],
    ]
    for (const decision of asked) expect(decision).toMatchObject({ allowed: false, reasons: [{ rule: 'no_address' }] })
    const filter = { filter: { contactable: question } }
    expect((await shop.ok('POST', '/v1/people/filter', filter)).items).toEqual([])
    await shop.ok('PATCH', '/v1/people/ada', { mobile_number: '+39 333 1234567' })
    expect(await shop.ok('POST', '/v1/people/ada/contactable', question)).toMatchObject({ allowed: true })
    expect((await shop.ok('POST', '/v1/people/filter', filter)).items).toHaveLength(1)
  })
})
