import { describe, expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
// Type 1 is the default of both channels. Type 3 is mandatory.
const organization = useShop(
  service,
  { key: 'news', channels: [{ channel: 'email' }, { channel: 'sms' }] },
  { key: 'contract', channels: [{ channel: 'email' }], mandatory: true },
)
const { send, ok } = organization

const record = async (...events: object[]): Promise<string[]> =>
  (await ok('POST', '/v1/deliverability', { events })).items.map(({ status }: { status: string }) => status)
const email = (address: string, type: string, more: object = {}) => ({ channel: 'email', address, type, ...more })
const person = (external_id: string, body: object = {}) => ok('POST', '/v1/people', { external_id, ...body })
const addressesOf = async (name: string) => (await ok('GET', `/v1/people/${name}/deliverability`)).items
const listed = async (query = '') =>
  (await ok('GET', `/v1/deliverability${query}`)).items.map(({ address }: { address: string }) => address)
const consentsOf = async (name: string) =>
  (await ok('GET', `/v1/people/${name}`)).consents.map(
    ({ consent_type_id, channel, state }: Record<string, unknown>) => `${consent_type_id} ${channel} ${state}`,
  )
const at = '2026-02-01T10:00:00.123456Z'

describe('the events of an address', () => {
  it('suppress it for 180 days after a hard bounce, and a repetition changes nothing', async () => {
    await person('ada', { email: 'Ada@Example.com' })
    const now = new Date().toISOString()
    const bounce = email('ADA@example.com', 'hard_bounce', { at: now, provider: 'ses', reference: 'm-1' })
    expect(await record(bounce)).toEqual(['stored'])
    const head = await organization.head()
    expect(await record(bounce, bounce)).toEqual(['unchanged', 'unchanged'])
    expect(await organization.head()).toBe(head)
    const until = new Date(Date.parse(now) + 180 * 86_400_000).toISOString()
    expect(await addressesOf('ada')).toEqual([
      {
        channel: 'email',
        address: 'ada@example.com',
        state: 'suppressed',
        suppression: { reason: 'hard_bounce', from: now, until, provider: 'ses', reference: 'm-1' },
        last_delivered_at: null,
        last_bounced_at: now,
        lifted_at: null,
      },
    ])
  })

  it('are known by provider and reference without a time, so a repetition changes nothing and others of the moment count', async () => {
    await person('ada', { email: 'ada@example.com' })
    const soft = (reference: string) => email('ada@example.com', 'soft_bounce', { provider: 'ses', reference })
    expect(await record(soft('m1'), soft('m1'), soft('m2'))).toEqual(['stored', 'unchanged', 'stored'])
    expect(await record(soft('m1'), soft('m2'))).toEqual(['unchanged', 'unchanged'])
    expect(await addressesOf('ada')).toMatchObject([{ state: 'deliverable' }])
    expect(await record(soft('m3'))).toEqual(['stored'])
    expect(await addressesOf('ada')).toMatchObject([{ state: 'suppressed' }])
    const complaint = email('ada@example.com', 'complaint', { provider: 'ses', reference: 'c1' })
    expect([await record(complaint), await record(complaint)]).toEqual([['stored'], ['unchanged']])
    expect((await ok('GET', '/v1/people/ada/consents/history?consent_type_id=1')).items).toHaveLength(1)
  })

  it('tell a change of each person with the address when it is suppressed, and when that is lifted', async () => {
    for (const name of ['ada', 'bob']) await person(name, { email: 'shared@example.com' })
    await record(email('shared@example.com', 'hard_bounce'))
    await ok('DELETE', '/v1/deliverability/email/Shared@example.com')
    const { items } = await ok('GET', '/v1/people/bob/history')
    expect(items.slice(0, 2)).toMatchObject([
      {
        operation: 'update',
        version: 3,
        before: { deliverability: [{ channel: 'email', state: 'suppressed', reason: 'hard_bounce' }] },
        after: { deliverability: [{ channel: 'email', state: 'deliverable' }] },
      },
      { operation: 'update', version: 2, before: { deliverability: [{ channel: 'email', state: 'deliverable' }] } },
    ])
    expect(await addressesOf('ada')).toMatchObject([{ state: 'deliverable', suppression: null }])
    expect(await organization.head()).toBe(6 + (await ok('GET', '/v1/changes?subject=consent_type')).items.length)
    const past = await ok('GET', '/v1/people/bob?version=2')
    expect(past).not.toHaveProperty('deliverability')
  })

  it('may come in any order: a delivery after the bounces ends their count, one before does not', async () => {
    const softs = ['2026-02-01', '2026-02-05', '2026-02-09'].map(day =>
      email('ada@example.com', 'soft_bounce', { at: `${day}T00:00:00Z` }),
    )
    await ok('PATCH', '/v1/schema/settings', { suppression_days: 3_650 })
    await person('ada', { email: 'ada@example.com' })
    await record(softs[2]!, softs[0]!)
    expect(await listed()).toEqual([])
    await record(softs[1]!, email('ada@example.com', 'delivered', { at: '2026-01-31T00:00:00Z' }))
    expect(await listed()).toEqual(['ada@example.com'])
    await record(email('ada@example.com', 'delivered', { at: '2026-02-02T00:00:00Z' }))
    expect(await listed()).toEqual([])
  })

  it('of a complaint refuse every purpose of the channel, and suppress until somebody lifts it', async () => {
    await person('ada', { email: 'ada@example.com', email_consent: true })
    await person('eve', { email: 'ADA@example.com', email_consent: true })
    const complaint = email('ada@example.com', 'complaint', {
      at: new Date().toISOString(),
      provider: 'postmark',
      reference: 'c1',
    })
    expect(await record(complaint)).toEqual(['stored'])
    for (const name of ['ada', 'eve']) expect(await consentsOf(name)).toContain('1 email false')
    const [answer] = (await ok('GET', '/v1/people/ada/consents/history')).items
    expect(answer).toMatchObject({ method: 'other', source: 'complaint (postmark)', reference: 'c1', state: false })
    expect(await addressesOf('ada')).toMatchObject([{ suppression: { reason: 'complaint', until: null } }])
    expect(await record(complaint)).toEqual(['unchanged'])
    const { items } = await ok('GET', '/v1/people/ada/history')
    expect(items.map(({ after }: { after: object }) => Object.keys(after))).toEqual([
      ['deliverability'],
      expect.arrayContaining(['consents']),
      expect.arrayContaining(['email']),
    ])
  })

  it('of an unsubscription refuse all purposes of the channel, or the one that it names, for everyone with the address', async () => {
    const { id } = await ok('POST', '/v1/schema/consent-types', { key: 'surveys', channels: [{ channel: 'email' }] })
    const consents = [1, id].map(consent_type_id => ({
      consent_type_id,
      channel: 'email',
      state: true,
      collected_at: '2026-01-01T00:00:00Z',
    }))
    for (const name of ['ada', 'bob']) await person(name, { email: 'ada@example.com', consents })
    const one = email('ada@example.com', 'unsubscribe', {
      at,
      consent_type_id: id,
      reference: 'u1',
      provider: 'sendgrid',
    })
    expect(await record(one)).toEqual(['stored'])
    expect(await consentsOf('bob')).toEqual(expect.arrayContaining(['1 email true', `${id} email false`]))
    expect(await record({ channel: 'email', external_id: 'bob', type: 'unsubscribe', at })).toEqual(['stored'])
    expect(await consentsOf('ada')).toEqual(expect.arrayContaining(['1 email false', `${id} email false`]))
    const head = await organization.head()
    expect(await record(one)).toEqual(['unchanged'])
    expect(await organization.head()).toBe(head)
    const [answer] = (await ok('GET', `/v1/people/ada/consents/history`)).items
    expect(answer).toMatchObject({ method: 'unsubscribe_link', collected_at: at })
    // The unsubscription does not suppress the address, because a message about a contract may still arrive.
    expect(await listed()).toEqual([])
  })

  it('of an unsubscription hold for an address that nobody has yet', async () => {
    const event = email('late@example.com', 'unsubscribe', { at })
    expect(await record(event)).toEqual(['stored'])
    expect(await record(event)).toEqual(['unchanged'])
    const consents = [{ consent_type_id: 1, channel: 'email', state: true, collected_at: '2026-01-01T00:00:00Z' }]
    await person('late', { email: 'Late@example.com', consents })
    const decide = () => ok('POST', '/v1/people/late/contactable', { consent_type_id: 1, channel: 'email' })
    expect(await decide()).toMatchObject({ allowed: false, reasons: [{ rule: 'address_answer', state: false }] })
    await ok('PATCH', '/v1/people/late', { consents: [{ consent_type_id: 1, channel: 'email', state: true }] })
    expect(await decide()).toMatchObject({ allowed: true })
  })

  it('before an answer that was given later change no state', async () => {
    const consents = [{ consent_type_id: 1, channel: 'email', state: true, collected_at: '2026-03-01T00:00:00Z' }]
    await person('ada', { email: 'ada@example.com', consents })
    const event = email('ada@example.com', 'unsubscribe', { at })
    expect(await record(event)).toEqual(['stored'])
    expect(await consentsOf('ada')).toContain('1 email true')
    expect(await record(event)).toEqual(['unchanged'])
  })

  it('have a status each', async () => {
    await person('ada', { email: 'ada@example.com' })
    expect(
      await record(
        email('ada@example.com', 'delivered'),
        { channel: 'email', external_id: 'nobody', type: 'delivered' },
        { channel: 'sms', external_id: 'ada', type: 'delivered' },
        email('not an address', 'delivered'),
        { channel: 'sms', address: '079 123', type: 'delivered' },
        email('ada@example.com', 'unsubscribe', { consent_type_id: 3 }),
        email('ada@example.com', 'unsubscribe', { consent_type_id: 99 }),
        { channel: 'sms', address: '+39 333 1234567', type: 'hard_bounce' },
      ),
    ).toEqual([
      'stored',
      'not_found',
      'no_address',
      'not_an_address',
      'not_an_address',
      'no_purpose',
      'no_purpose',
      'stored',
    ])
    expect(await listed('?channel=sms')).toEqual(['+393331234567'])
  })

  it.each([
    [{ events: [] }, '/events'],
    [{ events: [{ channel: 'post', address: 'a@example.com', type: 'delivered' }] }, '/events/0/channel'],
    [{ events: [{ channel: 'email', address: 'a@example.com', type: 'opened' }] }, '/events/0/type'],
    [
      { events: [{ channel: 'email', address: 'a@example.com', type: 'delivered', at: '2999-01-01T00:00:00Z' }] },
      '/events/0/at',
    ],
    [{ events: [{ channel: 'email', type: 'delivered' }] }, '/events/0'],
    [{ events: [{ channel: 'email', type: 'delivered', address: 'a@example.com', external_id: 'ada' }] }, '/events/0'],
  ])('are refused as a whole for %j', async (body, path) => {
    const reply = await send('POST', '/v1/deliverability', body)
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([400, [path]])
  })

  it('are at most 1,000 in a request', async () => {
    const events = Array.from({ length: 1_001 }, (_, n) => email(`a${n}@example.com`, 'delivered'))
    expect((await send('POST', '/v1/deliverability', { events })).status).toBe(400)
    expect(new Set(await record(...events.slice(1)))).toEqual(new Set(['stored']))
  })

  it('are kept of an address that nobody has: a person who gets it is suppressed at once', async () => {
    await record(email('late@example.com', 'hard_bounce'))
    await person('late', { email: 'late@example.com' })
    expect(await addressesOf('late')).toMatchObject([{ state: 'suppressed' }])
    await ok('PATCH', '/v1/people/late', { email: 'new@example.com' })
    expect(await addressesOf('late')).toMatchObject([{ address: 'new@example.com', state: 'deliverable' }])
  })

  it('keep what the provider says to the character, of addresses that are known and of new ones', async () => {
    const told = { at: '2026-11-01T10:00:00.123456Z', provider: '\\N', reference: 'a\tb\\t"c"\\' }
    await record(email('one@example.com', 'hard_bounce', { at: '2026-10-01T10:00:00Z' }))
    const addresses = ['two@example.com', 'one@example.com', "o'hara+a\\b@example.com"]
    const statuses = await record(...addresses.map(address => email(address, 'hard_bounce', told)))
    expect(statuses).toEqual(['stored', 'stored', 'not_an_address'])
    const { items } = await ok('GET', '/v1/deliverability/events')
    expect(items).toEqual(
      addresses
        .slice(0, 2)
        .toSorted()
        .map(address => email(address, 'hard_bounce', told)),
    )
  })

  it('include an undated refusal, as the earliest event that can be recorded', async () => {
    const undated = { consent_type_id: 1, channel: 'email', state: false, undated: true }
    await person('gone', { email: 'gone@example.com', consents: [undated] })
    await ok('DELETE', '/v1/people/gone')
    const { items } = await ok('GET', '/v1/deliverability/events')
    const at = '1990-01-01T00:00:00.000Z'
    expect(items).toEqual([email('gone@example.com', 'unsubscribe', { at, consent_type_id: 1 })])
    expect(await record(...items)).toEqual(['stored'])
    expect(await record(...items)).toEqual(['unchanged'])
  })

  it('are those of one organization', async () => {
    const other = await service.organization()
    await person('ada', { email: 'ada@example.com' })
    await record(email('ada@example.com', 'hard_bounce'))
    await other.send('POST', '/v1/people', { external_id: 'ada', email: 'ada@example.com' })
    expect((await other.send('GET', '/v1/deliverability')).body.data.items).toEqual([])
    expect((await other.send('DELETE', '/v1/deliverability/email/ada@example.com')).status).toBe(404)
    expect(await listed()).toEqual(['ada@example.com'])
  })

  it('need the scopes people:write and people:read', async () => {
    await person('ada', { email: 'ada@example.com' })
    const reader = service.sender(await service.tokenFor(organization.key, 'people:read'))
    const writer = service.sender(await service.tokenFor(organization.key, 'people:write'))
    const events = [email('ada@example.com', 'hard_bounce')]
    expect((await reader('POST', '/v1/deliverability', { events })).status).toBe(403)
    expect((await writer('POST', '/v1/deliverability', { events })).status).toBe(200)
    expect((await writer('GET', '/v1/deliverability')).status).toBe(403)
    expect((await writer('GET', '/v1/people/ada/deliverability')).status).toBe(403)
    expect((await reader('DELETE', '/v1/deliverability/email/ada@example.com')).status).toBe(403)
    expect((await reader('GET', '/v1/people/ada/deliverability')).status).toBe(200)
  })
})

describe('the list of suppressed addresses', () => {
  it('has the latest first, in pages, and finds parts of addresses', async () => {
    const days = ['2026-11-01', '2026-11-02', '2026-11-03']
    await record(
      ...days.map((day, n) => email(`a${n}@example.com`, 'hard_bounce', { at: `${day}T00:00:00.5Z` })),
      email('zoe@other.example', 'complaint', { at: '2026-10-01T00:00:00Z' }),
    )
    expect(await listed()).toEqual(['a2@example.com', 'a1@example.com', 'a0@example.com', 'zoe@other.example'])
    expect(await listed('?reason=complaint')).toEqual(['zoe@other.example'])
    expect(await listed('?search=A1')).toEqual(['a1@example.com'])
    const first = await ok('GET', '/v1/deliverability?limit=3')
    const second = await ok('GET', `/v1/deliverability?limit=3&cursor=${encodeURIComponent(first.next_cursor)}`)
    expect([...first.items, ...second.items].map(({ address }) => address)).toEqual(await listed())
    expect(second.next_cursor).toBe(null)
    expect((await send('GET', '/v1/deliverability?cursor=x')).status).toBe(400)
  })

  it('follows the setting suppression_days', async () => {
    const days = (count: number) => new Date(Date.now() - count * 86_400_000).toISOString()
    await record(
      email('a@example.com', 'hard_bounce', { at: days(200) }),
      email('b@example.com', 'hard_bounce', { at: days(100) }),
    )
    expect(await listed()).toEqual(['b@example.com'])
    await ok('PATCH', '/v1/schema/settings', { suppression_days: 250 })
    expect(await listed()).toEqual(['b@example.com', 'a@example.com'])
    await ok('PATCH', '/v1/schema/settings', { suppression_days: 50 })
    expect(await listed()).toEqual([])
  })
})

describe('an erasure', () => {
  const erase = (name: string) => ok('POST', `/v1/people/${name}/erase`, { reason: 'Request of the person' })
  const rows = () =>
    service.sql<{ address: string | null; events: string }>(
      `select d.address, d.events::text from deliverability d where d.organization_id = $1`,
      [organization.id],
    )

  it('leaves the keyed hash of a suppressed address, which stays suppressed for whoever gets it', async () => {
    await person('ada', { email: 'ada@example.com', mobile_prefix: '+39', mobile_number: '3331234567' })
    await record(email('ada@example.com', 'hard_bounce', { reference: 'm-77' }), {
      channel: 'sms',
      external_id: 'ada',
      type: 'delivered',
    })
    await erase('ada')
    expect(await rows()).toEqual([{ address: null, events: expect.not.stringContaining('m-77') }])
    expect(await listed()).toEqual([null])
    // A later event does not restore the address either.
    expect(await record(email('ada@example.com', 'complaint'))).toEqual(['stored'])
    expect(await listed()).toEqual([null])
    await ok('POST', '/v1/people', { external_id: 'new', email: 'Ada@example.com' }, { Prefer: 'erased=recreate' })
    expect(await addressesOf('new')).toMatchObject([{ address: 'ada@example.com', state: 'suppressed' }])
    expect(await listed()).toEqual(['ada@example.com'])
  })

  it('keeps the address if another person has it', async () => {
    for (const name of ['ada', 'bob']) await person(name, { email: 'shared@example.com' })
    await record(email('shared@example.com', 'hard_bounce'))
    await erase('ada')
    expect(await listed()).toEqual(['shared@example.com'])
  })

  it('lets a suppression be lifted by the address that only a hash is left of', async () => {
    await person('ada', { email: 'ada@example.com' })
    await record(email('ada@example.com', 'complaint'))
    await erase('ada')
    await ok('DELETE', '/v1/deliverability/email/ada@example.com')
    expect(await listed()).toEqual([])
  })
})
