import { createHash, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { readFeed } from '../../test/support/changes.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'
import { uuidOfRecord } from '../values/formats.ts'
import type { RecordedAnswer } from './schema.ts'

const service = useService()
// Type 1 is the default of both channels, and type 2 has both.
const organization = useShop(service, { key: 'surveys', channels: [{ channel: 'email' }, { channel: 'sms' }] })
const { send } = organization

type Page = { items: RecordedAnswer[]; has_more: boolean }

const entry = (consent_type_id: number, channel: string, state: boolean) => ({ consent_type_id, channel, state })

async function create(external_id: string, body: object = {}): Promise<string> {
  const { status, body: reply } = await send('POST', '/v1/people', { external_id, ...body })
  expect(status).toBe(201)
  return reply.data.id
}

const answer = (external_id: string, ...consents: object[]) => send('PATCH', `/v1/people/${external_id}`, { consents })

async function history(address = 'ada', query = ''): Promise<Page> {
  const { status, body } = await send('GET', `/v1/people/${address}/consents/history${query}`)
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return body.data
}

const keysOf = ({ items }: Page) =>
  items.map(({ version, consent_type_id, channel }) => `${version} ${consent_type_id}:${channel}`)

const noEvidence = {
  collected_at: null,
  method: null,
  source: null,
  ip: null,
  user_agent: null,
  text_version: null,
  text_sha256: null,
  reference: null,
  consent_string: null,
}

describe('the consent history of a person', () => {
  it('has every answer, newest first, with the number and the version of its change, by both identifiers', async () => {
    const id = await create('ada')
    await create('bob', { consents: [entry(1, 'email', true)] })
    await answer('ada', entry(2, 'sms', true), entry(2, 'email', true))
    await send('PATCH', '/v1/people/ada', { first_name: 'Ada' })
    await answer('ada', entry(2, 'email', false))
    const changes = (await readFeed(organization, 'limit=1000')).items.filter(change => change.id === id)
    const page = await history()
    const common = { ...noEvidence, superseded: false, pending: false, actor: 'tests' }
    const ofVersion = (version: number) => {
      const { sequence, at, request_id } = changes.find(change => change.version === version)!
      return { ...common, version, sequence, at, request_id }
    }
    expect(page).toEqual({
      items: [
        { ...ofVersion(4), ...entry(2, 'email', false), previous_state: true },
        { ...ofVersion(2), ...entry(2, 'email', true), previous_state: null },
        { ...ofVersion(2), ...entry(2, 'sms', true), previous_state: null },
      ],
      has_more: false,
    })
    expect(await history(`internal/${id}`)).toEqual(page)
    expect(await history(`internal/${id.toUpperCase()}`)).toEqual(page)
  })

  it('shows the evidence that was given, with the hash of the text', async () => {
    const text = 'I want the surveys. — Ä'
    for (const body of [
      { language: 'en', text: 'Another' },
      { language: 'de', text },
    ])
      expect((await send('POST', '/v1/schema/consent-types/2/texts', body)).status).toBe(201)
    const evidence = {
      collected_at: '2025-06-01T10:00:00.123Z',
      method: 'paper',
      source: 'fair "2025"\nin Rome',
      ip: '2001:db8::1',
      user_agent: 'Browser',
      text_version: 2,
      reference: 'form 7',
    }
    await create('ada', { consents: [{ ...entry(2, 'email', true), ...evidence }, entry(1, 'email', true)] })
    const { items } = await history()
    expect(items).toMatchObject([noEvidence, evidence])
    expect(items[1]!.text_sha256).toBe(createHash('sha256').update(text).digest('hex'))
  })

  it('marks answers that changed no state, and grants that wait for their confirmation', async () => {
    await send('PATCH', '/v1/schema/consent-types/2', { channels: [{ channel: 'email', double_opt_in: true }] })
    await create('ada', { consents: [entry(1, 'email', false)] })
    const collected_at = '2020-01-01T00:00:00.000Z'
    await answer('ada', { ...entry(1, 'email', true), collected_at }, entry(2, 'email', true))
    await answer('ada', { ...entry(2, 'email', true), method: 'double_opt_in' })
    const { items } = await history()
    expect(
      items.map(({ consent_type_id, state, superseded, pending }) => [consent_type_id, state, superseded, pending]),
    ).toEqual([
      [2, true, false, false],
      [1, true, true, false],
      [2, true, false, true],
      [1, false, false, false],
    ])
    expect(items.map(({ previous_state }) => previous_state)).toEqual([false, false, null, null])
  })

  it('is reduced to a consent type and to a channel', async () => {
    await create('ada', { consents: [entry(1, 'email', true), entry(1, 'sms', true), entry(2, 'email', true)] })
    await answer('ada', entry(2, 'sms', true))
    expect(keysOf(await history('ada', '?consent_type_id=1'))).toEqual(['1 1:email', '1 1:sms'])
    expect(keysOf(await history('ada', '?channel=sms'))).toEqual(['2 2:sms', '1 1:sms'])
    expect(keysOf(await history('ada', '?channel=email&consent_type_id=2'))).toEqual(['1 2:email'])
    expect(await history('ada', '?consent_type_id=99')).toEqual({ items: [], has_more: false })
  })

  it('has pages that end with the write that reaches the limit, and continues before a version', async () => {
    await create('ada', { consents: [entry(1, 'email', true), entry(2, 'email', true)] })
    await answer('ada', entry(1, 'sms', true))
    await answer('ada', entry(1, 'sms', false), entry(2, 'sms', true), entry(2, 'email', false))
    const all = keysOf(await history())
    expect(all).toEqual(['3 1:sms', '3 2:email', '3 2:sms', '2 1:sms', '1 1:email', '1 2:email'])
    const page = async (query: string) => {
      const found = await history('ada', `?${query}`)
      return [keysOf(found), found.has_more]
    }
    expect(await page('limit=1')).toEqual([all.slice(0, 3), true])
    expect(await page('limit=3')).toEqual([all.slice(0, 3), true])
    expect(await page('limit=4')).toEqual([all.slice(0, 4), true])
    expect(await page('limit=5')).toEqual([all, false])
    expect(await page('limit=1&before_version=3')).toEqual([['2 1:sms'], true])
    expect(await page('limit=1&before_version=2')).toEqual([all.slice(4), false])
    expect(await page('before_version=1')).toEqual([[], false])
    expect(await page('limit=1&channel=email')).toEqual([['3 2:email'], true])
    expect(await page('limit=1&channel=email&before_version=3')).toEqual([['1 1:email', '1 2:email'], false])
  })

  it('ends a page early when the evidence is large', async () => {
    const id = await create('ada', { consents: [entry(1, 'email', true)] })
    await service.sql(
      `insert into consent_history (organization_id, person_id, version, consent_type_id, channel, state, source, at, actor,
         request_id, evidence)
       select organization_id, person_id, n, consent_type_id, channel, state, source, at, actor, request_id,
         jsonb_build_object('source', repeat(n::text, 1000))
       from consent_history, generate_series(2, 1000) n where organization_id = $1 and person_id = $2`,
      [organization.id, id],
    )
    await service.sql(
      `insert into changes (organization_id, sequence, at, subject, stack_id, entity_id, operation, version, actor, request_id)
       select $1, 1000000 + n, now(), 'entity', 0, $2, 'update', n, 'tests', 'r' from generate_series(2, 1000) n`,
      [organization.id, id],
    )
    const versions: number[] = []
    let pages = 0
    for (let more = true; more; pages += 1) {
      const page = await history('ada', `?limit=1000&before_version=${versions.at(-1) ?? 5000}`)
      versions.push(...page.items.map(({ version }) => version))
      more = page.has_more
    }
    expect(versions).toEqual(Array.from({ length: 1000 }, (_, n) => 1000 - n))
    expect(pages).toBeGreaterThan(2)
  })

  it('is empty for a person without answers', async () => {
    await create('ada', { consents: [] })
    expect(await history()).toEqual({ items: [], has_more: false })
  })
})

describe('the consent history of a deleted person', () => {
  it('remains, by the internal identifier and by the last name', async () => {
    const id = await create('ada', { consents: [entry(1, 'email', true)] })
    await send('PATCH', '/v1/people/ada', { external_id: 'lovelace' })
    await send('DELETE', '/v1/people/lovelace')
    const page = await history(`internal/${id}`)
    expect(keysOf(page)).toEqual(['1 1:email'])
    expect(await history('lovelace')).toEqual(page)
    expect((await send('GET', '/v1/people/ada/consents/history')).status).toBe(404)
  })

  it('has the answers of before and after a restore, and no name leads to a restored person who has another now', async () => {
    const id = await create('ada', { consents: [entry(1, 'email', true)] })
    await send('DELETE', '/v1/people/ada')
    await send('POST', `/v1/people/internal/${id}/restore`)
    await answer('ada', entry(1, 'email', false))
    expect((await history()).items.map(({ state }) => state)).toEqual([false, true])
    await send('PATCH', '/v1/people/ada', { external_id: 'lovelace' })
    expect((await send('GET', '/v1/people/ada/consents/history')).status).toBe(404)
  })

  it('gives way to a person who has the name now, and to the one who was deleted with it later', async () => {
    await create('ada', { consents: [entry(1, 'email', true)] })
    await send('DELETE', '/v1/people/ada')
    await create('ada', { consents: [entry(1, 'sms', true)] })
    expect((await history()).items.map(({ channel }) => channel)).toEqual(['sms'])
    await send('DELETE', '/v1/people/ada')
    expect((await history()).items.map(({ channel }) => channel)).toEqual(['sms'])
  })
})

describe('a request for a consent history', () => {
  it('is not found for a person who never existed, and for a record', async () => {
    await send('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
    const record = (await send('POST', '/v1/stacks/orders', { external_id: 'o-1' })).body.data.record_id
    const replies = [
      await send('GET', '/v1/people/nobody/consents/history'),
      await send('GET', '/v1/people/o-1/consents/history'),
      await send('GET', `/v1/people/internal/${randomUUID()}/consents/history`),
      await send('GET', `/v1/people/internal/${uuidOfRecord(record)}/consents/history`),
    ]
    for (const { status, body } of replies) expect([status, body.error]).toEqual([404, 'not_found'])
  })

  it.each([
    ['limit=0', '/limit'],
    ['limit=1001', '/limit'],
    ['before_version=0', '/before_version'],
    ['consent_type_id=x', '/consent_type_id'],
    ['consent_type_id=0', '/consent_type_id'],
    ['channel=push', '/channel'],
    ['channel=email&channel=sms', '/channel'],
    ['after=1', '/after'],
  ])('gets 400 with %s', async (query, expected) => {
    await create('ada')
    const { status, body } = await send('GET', `/v1/people/ada/consents/history?${query}`)
    expect([status, body.error, body.details?.map(({ path }) => path)]).toEqual([400, 'invalid_parameter', [expected]])
  })

  it('needs the scope consents:read and no other', async () => {
    await create('ada')
    const replyWith = async (scope: string) => {
      const sender = service.sender(await service.tokenFor(organization.key, scope))
      const { status, body } = await sender('GET', '/v1/people/ada/consents/history')
      return [status, body.message]
    }
    expect(await replyWith('consents:read')).toEqual([200, undefined])
    expect(await replyWith('people:read changes:read')).toEqual([403, 'The token lacks the scope consents:read.'])
  })

  it('belongs to a person named internal, like the other addresses of that person', async () => {
    await create('internal', { consents: [entry(1, 'email', true)] })
    expect(keysOf(await history('internal'))).toEqual(['1 1:email'])
  })

  it('serves HEAD, and refuses other methods', async () => {
    await create('ada')
    expect((await send('HEAD', '/v1/people/ada/consents/history')).status).toBe(200)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      expect((await send(method, '/v1/people/ada/consents/history', {})).status).toBe(405)
  })
})
