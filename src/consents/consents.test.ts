import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { someRuns } from '../../test/support/runs.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()

// Type 1 is the default of both channels, 2 has both channels, 3 only email, 4 is mandatory, and 5 is archived.
const types = '/v1/schema/consent-types'
const both = [{ channel: 'email' as const }, { channel: 'sms' as const }]
const organization = useShop(
  service,
  { key: 'surveys', channels: both, default_state: true },
  { key: 'letters', channels: [{ channel: 'email' }] },
  { key: 'contract', channels: both, mandatory: true },
  { key: 'old', channels: both },
)
const { send } = organization
beforeEach(async () => {
  await send('PATCH', `${types}/5`, { state: 'archived' })
  await send('POST', '/v1/people', { external_id: 'ada' })
})

type Entry = { consent_type_id: number; channel: string; state: boolean }
const entry = (consent_type_id: number, channel: string, state: boolean): Entry => ({ consent_type_id, channel, state })
const keyOf = ({ consent_type_id, channel }: Entry) => `${consent_type_id}:${channel}`
const person = async () => (await send('GET', '/v1/people/ada')).body.data
const patch = (body: object) => send('PATCH', '/v1/people/ada', body)
const purpose = async (id: number, channel: string) =>
  (await person()).consents.find((shown: Entry) => shown.consent_type_id === id && shown.channel === channel)

type Answered = Entry & {
  person_id: string
  version: number
  previous_state: boolean | null
  source: string
  at: string
}
const history = () =>
  service.sql<Answered>(
    `select * from consent_history where organization_id = $1 order by version, consent_type_id, channel`,
    [organization.id],
  )
const all = async () => ({ person: await person(), history: await history() })

describe('the state of a consent', () => {
  it.each([true, false])('equals a first answer of %j, and so does the flag of the channel', async state => {
    await patch({ consents: [entry(1, 'email', state)] })
    expect(await purpose(1, 'email')).toMatchObject({ state, source: 'answer' })
    expect(await person()).toMatchObject({ email_consent: state, sms_consent: null })
    const at = (await person()).updated_at
    expect((await purpose(1, 'email')).answered_at).toBe(at)
    expect(await history()).toMatchObject([{ ...entry(1, 'email', state), previous_state: null, version: 2, at }])
  })

  it.each([
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])(
    'after the answers %j and %j equals the later one, and each answer increases the version',
    async (first, second) => {
      await patch({ consents: [entry(1, 'email', first)] })
      await patch({ consents: [entry(1, 'email', second)] })
      expect(await purpose(1, 'email')).toMatchObject({ state: second, source: 'answer' })
      expect(await person()).toMatchObject({ email_consent: second, version: 3 })
      expect(await history()).toMatchObject([
        { state: first, previous_state: null, version: 2 },
        { state: second, previous_state: first, version: 3 },
      ])
    },
  )

  it('is the default of its type without an answer, and a write leaves other answers unchanged', async () => {
    await patch({ consents: [entry(3, 'email', false)] })
    expect([await purpose(1, 'email'), await purpose(2, 'email'), await purpose(3, 'email')]).toMatchObject([
      { state: false, source: 'default', answered_at: null },
      { state: true, source: 'default', answered_at: null },
      { state: false, source: 'answer' },
    ])
    await patch({ consents: [entry(1, 'email', true)] })
    expect(await purpose(3, 'email')).toMatchObject({ state: false, source: 'answer' })
    expect(await history()).toHaveLength(2)
  })
})

describe('an answer', () => {
  it('can come with a create, the completion of a placeholder, a PUT, an upsert or a query string', async () => {
    await send('POST', '/v1/schema/attributes', { key: 'friend', owner: 'people', type: 'person' })
    const attribute_values = { friend: 'bob' }
    await send('POST', '/v1/people', { consents: [entry(1, 'sms', true)], attribute_values })
    await send('POST', '/v1/people', { external_id: 'bob', consents: [entry(1, 'sms', false)] })
    await send('PUT', '/v1/people/ada', { consents: [entry(2, 'sms', true)] })
    await send('POST', '/v1/people/upsert', { external_id: 'ada', consents: [entry(2, 'sms', false)] })
    const query = 'consents[0][consent_type_id]=2&consents[0][channel]=sms&consents[0][state]=true'
    expect((await send('PATCH', `/v1/people/ada?${query}`)).status).toBe(200)
    const rows = (await history()).map(row => `${row.version} ${row.state}`)
    expect(rows.sort()).toEqual(['1 true', '2 false', '2 true', '3 false', '4 true'])
  })

  it('is never changed in the history by later answers, flags, PUT, archiving or deletion', async () => {
    await patch({ consents: [entry(1, 'email', true), entry(2, 'sms', true)] })
    const first = await history()
    await patch({ email_consent: false, consents: [entry(2, 'sms', false)] })
    await send('PUT', '/v1/people/ada', { consents: null, email_consent: null, sms_consent: null })
    await send('PATCH', `${types}/1`, { state: 'archived' })
    await send('DELETE', '/v1/people/ada')
    await send('POST', '/v1/people', { external_id: 'ada', sms_consent: false })
    const last = await history()
    expect(last.filter(row => row.person_id === first[0]!.person_id && row.version === 2)).toEqual(first)
    expect(last).toHaveLength(first.length + 4 + 1)
  })

  it.each([
    ['unknown', entry(99, 'email', true), '/consents/1/consent_type_id'],
    ['archived', entry(5, 'email', true), '/consents/1/consent_type_id'],
    ['mandatory and granted', entry(4, 'sms', true), '/consents/1/consent_type_id'],
    ['not configured for the channel', entry(3, 'sms', false), '/consents/1/channel'],
    ['answered twice in one body', entry(1, 'sms', true), '/consents/1/consent_type_id'],
    ['of id 0', entry(0, 'email', true), '/consents/1/consent_type_id'],
    ['on an unknown channel', entry(1, 'push', true), '/consents/1/channel'],
  ])(
    'is refused if its purpose is %s, and the whole request fails in every operation',
    async (_description, bad, where) => {
      const body = { first_name: 'A', email_consent: true, consents: [entry(1, 'sms', true), bad] }
      const before = await all()
      for (const [method, path, more] of [
        ['PATCH', '/v1/people/ada', {}],
        ['PUT', '/v1/people/ada', {}],
        ['POST', '/v1/people', { external_id: 'bob' }],
        ['POST', '/v1/people/upsert', { external_id: 'ada' }],
      ] as const) {
        const reply = await send(method, path, { ...body, ...more })
        const found = reply.body.details?.map(detail => detail.path)
        expect([reply.status, reply.body.error, found]).toEqual([400, 'invalid_parameter', [where]])
      }
      expect(await all()).toEqual(before)
      expect((await send('GET', '/v1/people/bob')).status).toBe(404)
    },
  )

  it('is refused before the person is looked for if one body answers a purpose twice on a channel', async () => {
    const body = { consents: [entry(1, 'sms', true), entry(1, 'email', true), entry(1, 'sms', false)] }
    const before = await all()
    const details = [
      { path: '/consents/2/consent_type_id', message: 'repeats the consent_type_id and channel of an earlier element' },
    ]
    for (const [method, path, more] of [
      ['PATCH', '/v1/people/bob', {}],
      ['PUT', '/v1/people/bob', {}],
      ['PATCH', `/v1/people/internal/${crypto.randomUUID()}`, {}],
      ['POST', '/v1/people', { external_id: 'bob' }],
      ['POST', '/v1/people/upsert', { external_id: 'bob', match: ['email'] }],
    ] as const) {
      const { status, body: reply } = await send(method, path, { ...body, ...more })
      expect([status, reply.error, reply.details]).toEqual([400, 'invalid_parameter', details])
    }
    const operations = ['create', 'put', 'patch', 'upsert'].map(op => ({ op, external_id: 'bob', body }))
    const { items } = (await send('POST', '/v1/people/batch', { operations })).body.data
    for (const [index, { status, error, details: found }] of items.entries())
      expect([status, error, found]).toEqual([
        400,
        'invalid_parameter',
        details.map(detail => ({ ...detail, path: `/operations/${index}/body${detail.path}` })),
      ])
    const { refused } = await importLines({ send }, '/v1/people/import', linesFrom([{ external_id: 'bob', ...body }]))
    expect(refused).toMatchObject([{ line: 1, error: 'invalid_parameter', details }])
    expect(await all()).toEqual(before)
  })
})

describe('a flag', () => {
  it('refuses with false every active, non-mandatory purpose of its channel and of no other channel', async () => {
    await patch({ consents: [entry(2, 'sms', true)] })
    await patch({ email_consent: false })
    const refused = (await history()).filter(row => row.version === 3)
    expect(refused.map(keyOf)).toEqual(['1:email', '2:email', '3:email'])
    expect(await person()).toMatchObject({ email_consent: false, sms_consent: true })
  })

  it('grants with true only the default purpose: refusals and defaults of other purposes stay', async () => {
    await patch({ consents: [entry(2, 'email', false)] })
    await patch({ email_consent: true })
    expect([await purpose(1, 'email'), await purpose(2, 'email'), await purpose(3, 'email')]).toMatchObject([
      { state: true, source: 'answer' },
      { state: false, source: 'answer' },
      { state: false, source: 'default' },
    ])
  })

  it('is refused with 400 if it is true on a channel without a default, and nothing of the request is stored', async () => {
    await send('PATCH', `${types}/1`, { channels: [{ channel: 'email', is_default: true }, { channel: 'sms' }] })
    const before = await all()
    const reply = await patch({ first_name: 'A', sms_consent: true, consents: [entry(1, 'sms', true)] })
    expect([reply.status, reply.body.details?.map(detail => detail.path)]).toEqual([400, ['/sms_consent']])
    expect(await all()).toEqual(before)
  })

  it('is overridden by entries of the same body', async () => {
    const consents = [entry(2, 'email', true), entry(1, 'sms', false)]
    await patch({ email_consent: false, sms_consent: true, consents })
    expect(await person()).toMatchObject({ email_consent: true, sms_consent: false, version: 2 })
    const rows = (await history()).map(row => `${keyOf(row)} ${row.state} ${row.source}`)
    expect(rows).toEqual(['1:email false flag', '1:sms false entry', '2:email true entry', '3:email false flag'])
  })

  it('stays when a type is archived, whose answers then count as answers but not as grants', async () => {
    await patch({ consents: [entry(2, 'email', true)] })
    await send('PATCH', `${types}/2`, { state: 'archived' })
    expect(await person()).toMatchObject({ email_consent: true, version: 2 })
    expect(await purpose(2, 'email')).toBeUndefined()
    await patch({ consents: [entry(3, 'email', false)] })
    expect((await person()).email_consent).toBe(false)
    await send('PATCH', `${types}/2`, { state: 'active' })
    expect(await purpose(2, 'email')).toMatchObject({ state: true, source: 'answer' })
  })

  it('is stored as false without an answer if no purpose can be answered', async () => {
    for (const id of [1, 2, 3]) await send('PATCH', `${types}/${id}`, { state: 'archived' })
    await patch({ email_consent: false })
    await patch({ email_consent: null })
    await send('PUT', '/v1/people/ada', {})
    expect(await person()).toMatchObject({ email_consent: false, sms_consent: null, version: 2 })
    expect(await history()).toEqual([])
  })
})

const answerable = [1, 2].flatMap(id => ['email', 'sms'].map(channel => entry(id, channel, true)))
answerable.push(entry(3, 'email', true))
const givenEntry = fc.tuple(fc.constantFrom(...answerable), fc.boolean()).map(([given, state]) => ({ ...given, state }))
const flag = fc.option(fc.boolean())
const consents = fc.uniqueArray(givenEntry, { selector: keyOf, maxLength: 3 })
const body = fc.record({ email_consent: flag, sms_consent: flag, consents }, { requiredKeys: [] })

/** The answers of a body by the documented rules: the flags first, then the entries. */
function answersOf(given: { email_consent?: boolean | null; sms_consent?: boolean | null; consents?: Entry[] }) {
  const flags: Record<string, boolean | null | undefined> = { email: given.email_consent, sms: given.sms_consent }
  const byFlag = answerable
    .map(answer => ({ ...answer, state: flags[answer.channel] ?? null }))
    .filter(answer => answer.state === false || (answer.state === true && answer.consent_type_id === 1))
  return new Map([...byFlag, ...(given.consents ?? [])].map(answer => [keyOf(answer as Entry), answer.state]))
}

it('the history contains every answer of any sequence of writes, and replaying it gives the stored state', async () => {
  type Stored = { answers: Record<string, { state: boolean }>; email_consent: boolean; sms_consent: boolean }
  const run = async (bodies: Parameters<typeof answersOf>[0][]) => {
    const { id } = (await send('POST', '/v1/people', {})).body.data
    for (const given of bodies) await send('PATCH', `/v1/people/internal/${id}`, given)
    const rows = (await history()).filter(row => row.person_id === id)
    const recorded = [...Map.groupBy(rows, row => row.version).values()]
    const expected = bodies.map(answersOf).filter(answers => answers.size > 0)
    expect(recorded.map(answers => new Map(answers.map(row => [keyOf(row), row.state])))).toEqual(expected)

    const model: Record<string, boolean> = {}
    for (const row of rows) {
      expect(row.previous_state).toBe(model[keyOf(row)] ?? null)
      model[keyOf(row)] = row.state
    }
    const summaryOf = (channel: string) => {
      const states = Object.keys(model).flatMap(key => (key.endsWith(channel) ? [model[key]!] : []))
      return states.length === 0 ? null : states.includes(true)
    }
    const [stored] = await service.sql<Stored>('select * from entities where organization_id = $1 and id = $2', [
      organization.id,
      id,
    ])
    const answers = Object.entries(stored!.answers).map(([key, { state }]) => [key, state])
    expect(Object.fromEntries(answers)).toEqual(model)
    expect([stored!.email_consent, stored!.sms_consent]).toEqual([summaryOf('email'), summaryOf('sms')])
  }
  await fc.assert(fc.asyncProperty(fc.array(body, { minLength: 1, maxLength: 5 }), run), someRuns(25))
})
