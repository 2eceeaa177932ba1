import { describe, expect, it } from 'vitest'
import { followSegments } from '../../test/support/segments.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useOwnService()
// Type 1 is the default of both channels.
const organization = useShop(service)
const { ok, send } = organization

const record = (...events: object[]) => ok('POST', '/v1/deliverability', { events })
const email = (address: string, type: string, more: object = {}) => ({ channel: 'email', address, type, ...more })
const granted = { consents: [{ consent_type_id: 1, channel: 'email', state: true }] }
const person = (external_id: string, body: object = {}) => ok('POST', '/v1/people', { external_id, ...body })
const found = async (filter: object): Promise<string[]> =>
  (await ok('POST', '/v1/people/filter', { filter })).items
    .map(({ external_id }: { external_id: string }) => external_id)
    .sort()
const contactable = { consent_type_id: 1, channel: 'email' }
const some = (condition: object) => ({ deliverability: { $some: condition } })

async function plant() {
  await person('ada', { email: 'Ada@example.com', ...granted })
  await person('eve', { email: 'ada@example.com', ...granted })
  await person('bob', { email: 'bob@example.com', mobile_prefix: '+39', mobile_number: '3331234567', ...granted })
  await person('carl', { mobile_prefix: '+39', mobile_number: '3337654321' })
  await person('none')
  await record(email('ada@example.com', 'hard_bounce', { provider: 'ses', reference: 'm1' }), {
    channel: 'sms',
    external_id: 'carl',
    type: 'complaint',
  })
}

describe('a person whose address is suppressed', () => {
  it('may not be written to, with the event as the reason, until it is lifted', async () => {
    await plant()
    const decide = () => ok('POST', '/v1/people/eve/contactable', contactable)
    const suppressed = {
      rule: 'suppressed',
      event: 'hard_bounce',
      at: expect.stringMatching(/Z$/),
      until: expect.stringMatching(/Z$/),
      provider: 'ses',
      reference: 'm1',
    }
    expect(await decide()).toMatchObject({ allowed: false, reasons: [suppressed] })
    const many = await ok('POST', '/v1/people/contactable', {
      external_ids: ['ada', 'bob', 'carl', 'none'],
      ...contactable,
    })
    expect(many.items.map(({ allowed }: { allowed: boolean }) => allowed)).toEqual([false, true, false, false])
    expect(await found({ contactable })).toEqual(['bob'])
    await ok('DELETE', '/v1/deliverability/email/ada@example.com')
    expect(await decide()).toMatchObject({ allowed: true, reasons: [{ rule: 'answer' }] })
    expect(await found({ contactable })).toEqual(['ada', 'bob', 'eve'])
  })

  it('has the last of three soft bounces as the reason', async () => {
    await plant()
    const soft = (reference: string) => email('bob@example.com', 'soft_bounce', { provider: 'ses', reference })
    await record(soft('m1'), soft('m2'), soft('m3'))
    const { reasons } = await ok('POST', '/v1/people/bob/contactable', contactable)
    expect(reasons).toMatchObject([{ rule: 'suppressed', event: 'soft_bounce', provider: 'ses', reference: 'm3' }])
  })

  it('is judged anew with another address', async () => {
    await plant()
    await ok('PATCH', '/v1/people/eve', { email: 'new@example.com' })
    expect(await ok('POST', '/v1/people/eve/contactable', contactable)).toMatchObject({ allowed: true })
    await ok('PATCH', '/v1/people/bob', { email: 'ada@example.com' })
    expect(await ok('POST', '/v1/people/bob/contactable', contactable)).toMatchObject({ allowed: false })
  })

  it('is found by a filter, as those are whose address is not', async () => {
    await plant()
    expect(await found(some({ channel: 'email', state: 'suppressed' }))).toEqual(['ada', 'eve'])
    expect(await found(some({ channel: 'email', state: 'deliverable' }))).toEqual(['bob'])
    expect(await found(some({ state: 'suppressed' }))).toEqual(['ada', 'carl', 'eve'])
    expect(await found(some({ channel: 'sms' }))).toEqual(['bob', 'carl'])
    expect(await found({ $not: some({ channel: 'email', state: 'suppressed' }) })).toEqual(['bob', 'carl', 'none'])
    expect(await found({ $and: [some({ state: 'suppressed' }), { external_id: 'carl' }] })).toEqual(['carl'])
    const { count } = await ok('POST', '/v1/people/filter', { filter: some({ state: 'suppressed' }), count: true })
    expect(count).toBe(3)
  })

  it.each([
    [{ deliverability: 'suppressed' }, '/filter/deliverability'],
    [{ deliverability: { $none: {} } }, '/filter/deliverability'],
    [some({ channel: 'post' }), '/filter/deliverability/$some/channel'],
    [some({ state: 'bounced' }), '/filter/deliverability/$some/state'],
    [some({ reason: 'complaint' }), '/filter/deliverability/$some/reason'],
  ])('is not found by the wrong filter %j', async (filter, path) => {
    const reply = await send('POST', '/v1/people/filter', { filter })
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([400, [path]])
  })

  it('enters and leaves segments with the event', async () => {
    await plant()
    await ok('POST', '/v1/segments', { key: 'reachable', filter: { contactable } })
    await ok('POST', '/v1/segments', { key: 'gone', filter: some({ state: 'suppressed' }) })
    await followSegments(service)
    const membersOf = async (key: string) => found({ $segment: key })
    const movesAfter = async (after: number) => {
      const { items } = await ok('GET', `/v1/changes?after=${after}&segment=reachable&segment=gone`)
      return items.map(
        ({ external_id, segments }: { external_id: string; segments: Record<string, { key: string }[]> }) => [
          external_id,
          segments.entered!.map(({ key }) => key),
          segments.left!.map(({ key }) => key),
        ],
      )
    }
    expect([await membersOf('reachable'), await membersOf('gone')]).toEqual([['bob'], ['ada', 'carl', 'eve']])
    const before = await organization.head()
    await record(email('bob@example.com', 'complaint', { at: '2026-01-01T00:00:00Z' }))
    await followSegments(service)
    expect(await movesAfter(before)).toEqual([['bob', ['gone'], ['reachable']]])
    await ok('DELETE', '/v1/deliverability/email/ada@example.com')
    await followSegments(service)
    expect([await membersOf('reachable'), await membersOf('gone')]).toEqual([
      ['ada', 'eve'],
      ['bob', 'carl'],
    ])
  })

  it('does not count as one who may be written to', async () => {
    await plant()
    const statistics = async () => {
      const { items } = await ok('POST', '/v1/consents/statistics', { interval: 'day', ...contactable })
      return items[0]
    }
    expect(await statistics()).toMatchObject({ contactable: 1 })
    await ok('PATCH', '/v1/schema/consent-types/1', { default_state: true })
    await person('dora', { email: 'dora@example.com' })
    expect(await statistics()).toMatchObject({ contactable: 2 })
    await record(email('dora@example.com', 'hard_bounce'))
    expect(await statistics()).toMatchObject({ contactable: 1 })
  })
})
