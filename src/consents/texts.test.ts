import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const texts = '/v1/schema/consent-types/1/texts'
const organization = useShop(service)
const { send } = organization

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex')

it('texts of a consent type count from 1, carry their SHA-256, and read back', async () => {
  const html = '<b>Grüße</b> & "more"'
  const first = await send('POST', texts, { language: 'en', text: 'Yes, write to me.', url: 'https://shop.example/a' })
  const second = await send('POST', texts, { language: 'de', text: ` ${html}\n` })
  expect([first.status, second.status]).toEqual([201, 201])
  expect(first.headers.get('location')).toBe(`${texts}/1`)
  expect(first.body.data).toMatchObject({ version: 1, language: 'en', url: 'https://shop.example/a' })
  expect(second.body.data).toMatchObject({ version: 2, text: html, url: null, sha256: sha256(html) })
  expect((await send('GET', texts)).body.data).toEqual({ items: [first.body.data, second.body.data], has_more: false })
  expect((await send('GET', `${texts}/2`)).body.data).toEqual(second.body.data)
  expect((await send('GET', '/v1/schema/consent-types/1')).body.data.text_versions).toBe(2)
})

it('texts are numbered for each consent type and each organization', async () => {
  const { body } = await send('POST', '/v1/schema/consent-types', { key: 'calls', channels: [{ channel: 'sms' }] })
  const other = await service.organization()
  await send('POST', texts, { language: 'en', text: 'ours' })
  const calls = await send('POST', `/v1/schema/consent-types/${body.data.id}/texts`, { language: 'en', text: 'calls' })
  const theirs = await other.send('POST', texts, { language: 'en', text: 'theirs' })
  expect([calls.body.data.version, theirs.body.data.version]).toEqual([1, 1])
  expect((await send('GET', texts)).body.data.items.map(({ text }: { text: string }) => text)).toEqual(['ours'])
  expect((await other.send('GET', `${texts}/1`)).body.data.text).toBe('theirs')
})

it('texts are listed in pages', async () => {
  for (const text of ['a', 'b', 'c']) await send('POST', texts, { language: 'en', text })
  const page = async (query: string) => {
    const { items, has_more } = (await send('GET', `${texts}?${query}`)).body.data
    return [items.map(({ version }: { version: number }) => version), has_more]
  }
  expect(await page('limit=2')).toEqual([[1, 2], true])
  expect(await page('limit=2&after=2')).toEqual([[3], false])
  expect(await page('after=3')).toEqual([[], false])
  expect((await send('GET', `${texts}?limit=101`)).body.details).toMatchObject([{ path: '/limit' }])
})

it('a new text is a change of its consent type, and an answer may name it at once', async () => {
  const consents = [{ consent_type_id: 1, channel: 'email', state: true, text_version: 1 }]
  await send('POST', '/v1/people', { external_id: 'ada' })
  const refused = await send('PATCH', '/v1/people/ada', { consents })
  expect(refused.body.details).toEqual([
    { path: '/consents/0/text_version', message: 'the consent type has no texts: add the text first' },
  ])
  const before = (await send('GET', '/v1/schema/consent-types/1')).body.data
  const { created_at } = (await send('POST', texts, { language: 'en', text: 'Yes.' })).body.data
  expect((await send('PATCH', '/v1/people/ada', { consents })).status).toBe(200)
  const { items } = (await send('GET', '/v1/changes?subject=consent_type')).body.data
  expect(items.at(-1)).toMatchObject({
    subject: 'consent_type',
    id: 1,
    operation: 'update',
    before: { text_versions: 0 },
    after: { text_versions: 1 },
    at: created_at,
  })
  expect((await send('GET', '/v1/schema/consent-types/1')).body.data).toEqual({
    ...before,
    text_versions: 1,
    updated_at: created_at,
  })
})

it.each<[string, object, string]>([
  ['no language', { text: 'x' }, '/language'],
  ['no text', { language: 'en' }, '/text'],
  ['an unknown language', { language: 'english language', text: 'x' }, '/language'],
  ['an empty text', { language: 'en', text: '  ' }, '/text'],
  ['a text of 64 KiB and one byte', { language: 'en', text: `${'é'.repeat(32_768)}x` }, '/text'],
  ['a URL of a script', { language: 'en', text: 'x', url: 'javascript:alert(1)' }, '/url'],
  ['a URL of another scheme', { language: 'en', text: 'x', url: 'ftp://shop.example' }, '/url'],
  ['a URL without a host', { language: 'en', text: 'x', url: 'https://' }, '/url'],
  ['a long URL', { language: 'en', text: 'x', url: `https://shop.example/${'x'.repeat(2_048)}` }, '/url'],
  ['an unknown key', { language: 'en', text: 'x', version: 7 }, '/version'],
])('a text with %s is refused, and nothing is stored', async (_name, body, path) => {
  const reply = await send('POST', texts, body)
  expect([reply.status, reply.body.error, reply.body.details?.map(each => each.path)]).toEqual([
    400,
    'invalid_parameter',
    [path],
  ])
  expect((await send('GET', texts)).body.data.items).toEqual([])
})

it('a text may have 64 KiB', async () => {
  const text = 'é'.repeat(32_768)
  expect((await send('POST', texts, { language: 'en', text })).body.data).toMatchObject({ text, sha256: sha256(text) })
})

it('texts of an unknown consent type, and unknown texts, are not found', async () => {
  const unknown = '/v1/schema/consent-types/99/texts'
  for (const [method, path, body] of [
    ['POST', unknown, { language: 'en', text: 'x' }],
    ['GET', unknown, undefined],
    ['GET', `${unknown}/1`, undefined],
    ['GET', `${texts}/1`, undefined],
    ['GET', `${texts}/999999999`, undefined],
  ] as const)
    expect([path, (await send(method, path, body)).status]).toEqual([path, 404])
})

it('texts need the scopes of the schema', async () => {
  const reader = service.sender(await service.tokenFor(organization.key, 'schema:read people:write'))
  const writer = service.sender(await service.tokenFor(organization.key, 'schema:write'))
  expect((await reader('POST', texts, { language: 'en', text: 'x' })).status).toBe(403)
  expect((await writer('POST', texts, { language: 'en', text: 'x' })).status).toBe(201)
  expect((await writer('GET', texts)).status).toBe(403)
  expect((await writer('GET', `${texts}/1`)).status).toBe(403)
  expect((await reader('GET', texts)).status).toBe(200)
})

it('a repeated request with a key adds one text', async () => {
  const add = () => send('POST', texts, { language: 'en', text: 'x' }, { 'Idempotency-Key': 'once' })
  expect((await add()).body.data).toEqual((await add()).body.data)
  expect((await send('GET', texts)).body.data.items).toHaveLength(1)
})

it('texts that are added at once get different versions', async () => {
  const adding = ['a', 'b', 'c', 'd'].map(text => send('POST', texts, { language: 'en', text }))
  const versions = (await Promise.all(adding)).map(({ body }) => body.data.version)
  expect(versions.sort()).toEqual([1, 2, 3, 4])
})
