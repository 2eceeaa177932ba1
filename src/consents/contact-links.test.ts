import { beforeAll, describe, expect, it } from 'vitest'
import { formOf, requestPage } from '../../test/support/pages.ts'
import { useOwnService } from '../../test/support/service.ts'
import { useSharedShop } from '../../test/support/shop.ts'
import { parseLink } from '../consent-links/token.ts'

const service = useOwnService({ KITH_RATE_PAGES: '100000' })
// Type 1 is the default, 2 takes a grant as pending on email, 3 is mandatory, and 4 is archived.
const organization = useSharedShop(
  service,
  { key: 'news', channels: [{ channel: 'email', double_opt_in: true }, { channel: 'sms' }] },
  { key: 'contract', channels: [{ channel: 'email' }], mandatory: true },
  { key: 'old', channels: [{ channel: 'email', double_opt_in: true }] },
)
const { send, ok } = organization
const answer = (consent_type_id: number, state: boolean, channel = 'email') => ({ consent_type_id, channel, state })
const ids: Record<string, string> = {}

beforeAll(async () => {
  const people: Record<string, object> = {
    granted: {
      consents: [answer(1, true), answer(2, true)].map(each => ({ ...each, method: 'double_opt_in' })),
    },
    waiting: { consents: [answer(2, true), answer(4, true)] },
    refused: { consents: [answer(1, false), answer(2, false)] },
    silent: {},
    unreachable: { consents: [answer(1, true), answer(2, true)] },
    gone: { consents: [answer(1, true), answer(2, true)] },
  }
  for (const [external_id, body] of Object.entries(people))
    ids[external_id] = (
      await ok('POST', '/v1/people', {
        external_id,
        ...body,
        ...(external_id !== 'unreachable' && { email: `${external_id}@example.com` }),
      })
    ).id
  await ok('DELETE', '/v1/people/gone')
  await ok('PATCH', '/v1/schema/consent-types/4', { state: 'archived' })
})

const names = ['granted', 'waiting', 'refused', 'silent', 'unreachable', 'gone', 'nobody']
type Item = { external_id: string; allowed: boolean; one_click_url?: string; confirm_url?: string }
const askMany = async (consent_type_id: number, body: object = {}): Promise<Item[]> =>
  (
    await ok('POST', '/v1/people/contactable', {
      external_ids: names,
      consent_type_id,
      channel: 'email',
      links: true,
      ...body,
    })
  ).items
const ask = (name: string, consent_type_id: number, body: object = {}) =>
  ok('POST', `/v1/people/${name}/contactable`, { consent_type_id, channel: 'email', links: true, ...body })
const linksOf = (items: Item[]) =>
  Object.fromEntries(
    items.flatMap(({ external_id, one_click_url, confirm_url }) =>
      one_click_url || confirm_url ? [[external_id, one_click_url ? 'one_click' : 'confirm']] : [],
    ),
  )
const parsed = (url: string) => parseLink(url.slice(url.lastIndexOf('/') + 1))

describe('the links of decisions', () => {
  it('unsubscribe those who may be written to, and confirm the grants that wait', async () => {
    const items = await askMany(2)
    expect(linksOf(items)).toEqual({ granted: 'one_click', waiting: 'confirm' })
    expect(linksOf(await askMany(1))).toEqual({ granted: 'one_click' })
    const [granted, waiting] = items
    const link = { person_id: ids.granted, consent_type_id: 2, channel: 'email' }
    expect(parsed(granted!.one_click_url!)).toMatchObject({ ...link, kind: 'unsubscribe' })
    expect(parsed(waiting!.confirm_url!)).toMatchObject({ ...link, kind: 'confirm', person_id: ids.waiting })
  })

  it('are none for a mandatory purpose, which nobody can refuse, and for an archived one', async () => {
    expect(linksOf(await askMany(3))).toEqual({})
    expect(linksOf(await askMany(4))).toEqual({})
  })

  it('are the same for one person, by both identifiers', async () => {
    const items = await askMany(2)
    for (const { external_id, ...item } of items.slice(0, 4))
      for (const address of [external_id, `internal/${ids[external_id]}`]) {
        const { sequence, ...decision } = await ask(address, 2)
        // The links expire a second later if the clock has moved between the requests.
        expect(Object.keys(decision)).toEqual(Object.keys(item))
        expect(decision.allowed).toBe(item.allowed)
      }
  })

  it('are those of the survivor for a person who was merged', async () => {
    await ok('POST', '/v1/people', { external_id: 'kept', email: 'kept@example.com' })
    const consents = [{ ...answer(2, true), method: 'double_opt_in' }]
    await ok('POST', '/v1/people', { external_id: 'merged', email: 'kept@example.com', consents })
    await ok('POST', '/v1/people/kept/merge', { from: 'merged' })
    const [{ one_click_url }] = (await askMany(2, { external_ids: ['merged'] })) as [Item]
    const { id } = await ok('GET', '/v1/people/kept')
    expect(parsed(one_click_url!)).toMatchObject({ person_id: id })
  })

  it('confirm by the page, and then refuse by one click, which the next decision follows', async () => {
    await ok('POST', '/v1/people', { external_id: 'new', email: 'new@example.com', consents: [answer(2, true)] })
    const { confirm_url } = await ask('new', 2)
    const { shown } = formOf(await requestPage(confirm_url))
    await ok('PATCH', '/v1/people/new', { email: 'other@example.com' })
    expect((await requestPage(confirm_url, { form: { shown } })).status).toBe(404)
    await ok('PATCH', '/v1/people/new', { email: 'new@example.com' })
    expect((await requestPage(confirm_url, { form: { shown } })).status).toBe(200)
    const { allowed, one_click_url } = await ask('new', 2)
    expect(allowed).toBe(true)
    const oneClick = { method: 'POST', form: { 'List-Unsubscribe': 'One-Click' } }
    expect((await requestPage(one_click_url, oneClick)).status).toBe(200)
    expect(await ask('new', 2)).toMatchObject({
      allowed: false,
      reasons: [{ rule: 'answer', method: 'unsubscribe_link', source: 'List-Unsubscribe=One-Click' }],
    })
  })

  it('are made only if the request asks for them', async () => {
    for (const links of [undefined, false]) {
      expect(linksOf(await askMany(2, { links }))).toEqual({})
      expect(Object.keys(await ask('granted', 2, { links })).sort()).toEqual(['allowed', 'reasons', 'sequence'])
    }
  })

  it('need the scope people:write besides consents:read', async () => {
    const purpose = { consent_type_id: 2, channel: 'email' }
    const requests: [string, object][] = [
      ['/v1/people/contactable', { external_ids: ['granted'], ...purpose }],
      ['/v1/people/granted/contactable', purpose],
    ]
    const reader = service.sender(await service.tokenFor(organization.key, 'consents:read'))
    const writer = service.sender(await service.tokenFor(organization.key, 'people:write'))
    for (const [path, body] of requests) {
      expect((await reader('POST', path, body)).status).toBe(200)
      const refusal = await reader('POST', path, { ...body, links: true })
      expect([refusal.status, refusal.body.error]).toEqual([403, 'forbidden'])
      expect(refusal.body.message).toContain('people:write')
      expect((await writer('POST', path, { ...body, links: true })).status).toBe(403)
    }
  })

  it('are refused for a decision of an earlier time', async () => {
    const at = new Date().toISOString()
    const body = { consent_type_id: 2, channel: 'email', links: true, at }
    const { status, body: refusal } = await send('POST', '/v1/people/granted/contactable', body)
    expect([status, refusal.details?.[0]?.path]).toEqual([400, '/links'])
  })
})
