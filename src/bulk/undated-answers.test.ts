import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { writable } from '../../client/index.ts'
import { exportAll, importLines, linesFrom, ndjsonHeaders } from '../../test/support/lines.ts'
import { someRuns } from '../../test/support/runs.ts'
import { type Organization, useService } from '../../test/support/service.ts'

const service = useService()
let organization: Organization

beforeEach(async () => {
  organization = await service.organization()
})

const question = { consent_type_id: 1, channel: 'email' } as const
const contact = async (external_id: string) =>
  (await organization.client.consents.contactable(external_id, question)).allowed
const answers = async (external_id: string) =>
  (await organization.client.consents.history(external_id).page()).items
    .map(({ state, superseded, undated = false, collected_at }) => ({ state, superseded, undated, collected_at }))
    .reverse()
const load = (lines: object[], query = '') => importLines(organization, `/v1/people/import${query}`, linesFrom(lines))

const yes = { email: 'ada@example.com', email_consent: true }
const entry = (state: boolean, more = {}) => ({ consents: [{ ...question, state, ...more }] })
const days = 86_400_000
const ago = (count: number) => new Date(Date.now() - count * days).toISOString()

describe('a consent answer of an import without its time', () => {
  it.each([
    ['flag', yes],
    ['entry', entry(true)],
    ['entry with evidence', entry(true, { method: 'paper', source: 'fair' })],
  ])('lifts no refusal as a %s, and is in the history as superseded, once', async (_, body) => {
    const { client } = organization
    await client.people.create({ external_id: 'ada', email: 'ada@example.com', email_consent: false })
    expect((await load([{ external_id: 'ada', ...body }])).counts).toMatchObject({ updated: 1 })
    expect(await contact('ada')).toBe(false)
    expect(await client.people.get('ada')).toMatchObject({ email_consent: false })
    const history = [
      { state: false, superseded: false, undated: false, collected_at: null },
      { state: true, superseded: true, undated: true, collected_at: null },
    ]
    expect(await answers('ada')).toEqual(history)
    expect((await load([{ external_id: 'ada', ...body }])).counts).toMatchObject({ unchanged: 1 })
    expect(await answers('ada')).toEqual(history)
  })

  it('lifts no refusal of a person whom the import recognizes by email', async () => {
    await organization.client.people.create({ external_id: 'ada', email: 'ADA@example.com', email_consent: false })
    expect((await load([yes], '?match=email')).counts).toMatchObject({ updated: 1 })
    expect(await contact('ada')).toBe(false)
  })

  it('answers what is unanswered, and any answer with a time replaces it', async () => {
    const { client } = organization
    await load([{ external_id: 'ada', ...yes }])
    expect(await contact('ada')).toBe(true)
    expect((await client.people.get('ada')).consents[0]).toMatchObject({ source: 'answer', state: true, undated: true })
    await load([{ external_id: 'ada', ...entry(false, { collected_at: ago(900) }) }])
    expect(await contact('ada')).toBe(false)
    expect((await client.people.get('ada')).consents[0]).not.toHaveProperty('undated')
  })

  it('is given now with consents=now, as in a single write', async () => {
    await organization.client.people.create({ external_id: 'ada', email: 'ada@example.com', email_consent: false })
    await load([{ external_id: 'ada', email_consent: true }], '?consents=now')
    expect(await contact('ada')).toBe(true)
    expect((await answers('ada')).map(({ undated }) => undated)).toEqual([false, false])
    const { refused } = await load([{ external_id: 'ada' }], '?consents=now&dry_run=true')
    expect(refused).toEqual([])
    const wrong = await organization.send('POST', '/v1/people/import?consents=then', '{}', ndjsonHeaders)
    expect([wrong.status, wrong.body.details?.[0]?.path]).toEqual([400, '/consents'])
  })

  it.each([
    ['flag', { email_consent: false }],
    ['entry with evidence', entry(false, { method: 'paper' })],
  ])(
    'is replaced by the same answer with consents=now as a %s, once, and an older one lifts that no more',
    async (_, body) => {
      const { client } = organization
      await client.people.create({ external_id: 'ada', email: 'ada@example.com' })
      await load([{ external_id: 'ada', ...body }])
      for (const counts of [{ updated: 1 }, { unchanged: 1 }])
        expect((await load([{ external_id: 'ada', ...body }], '?consents=now')).counts).toMatchObject(counts)
      expect((await answers('ada')).map(({ undated }) => undated)).toEqual([true, false])
      await load([{ external_id: 'ada', ...entry(true, { collected_at: ago(900) }) }])
      expect(await contact('ada')).toBe(false)
    },
  )

  it('stays without a time through an export, a deletion with its undoing, and a merge with its undoing', async () => {
    const { client } = organization
    await load([{ external_id: 'ada', ...yes }, { external_id: 'bo' }])
    const undated = async (external_id: string) => (await client.people.get(external_id)).consents[0]?.undated
    const [ada] = await exportAll(organization, '/v1/people/export')
    expect(ada).toMatchObject({ consents: [{ undated: true }, {}] })
    const { external_id: _, ...copy } = writable(ada as never) as { external_id: string }
    await client.people.create({ ...copy, external_id: 'copy' })
    expect(await undated('copy')).toBe(true)
    const both = { consents: [{ ...question, state: true, undated: true, collected_at: ago(1) }] }
    expect((await organization.send('PATCH', '/v1/people/copy', both)).body.details).toMatchObject([
      { path: '/consents/0/undated' },
    ])
    await client.people.delete('ada')
    await client.people.restore({ id: (ada as { id: string }).id })
    expect(await undated('ada')).toBe(true)
    await client.people.merge('bo', { from: 'ada' })
    expect(await undated('bo')).toBe(true)
    await client.people.unmerge('bo', { from: 'ada' })
    expect(await undated('ada')).toBe(true)
  })

  it('leaves the same answer in force whatever the order of the files', async () => {
    const line = fc.record({
      state: fc.boolean(),
      collected_at: fc.option(fc.constantFrom(ago(3), ago(2), ago(1)), { nil: undefined }),
    })
    let runs = 0
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 2, maxLength: 4 }), async lines => {
        const states = new Set<boolean>()
        for (const order of [lines, lines.toReversed()]) {
          const external_id = `run-${++runs}`
          for (const { state, ...more } of order)
            await load([{ external_id, email: 'x@example.com', ...entry(state, more) }])
          states.add(await contact(external_id))
        }
        expect(states).toHaveLength(1)
      }),
      someRuns(10),
    )
  })
})
