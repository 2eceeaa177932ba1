import { expect, it } from 'vitest'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const organization = useShop(service)

const path = '/v1/schema/settings'
const read = async ({ send } = organization) => (await send('GET', path)).body.data
const patch = (body: object, { send } = organization) => send('PATCH', path, body)

const unset = {
  display_name: null,
  accent_color: null,
  language: null,
  privacy_url: null,
  contact_email: null,
  page_texts: {},
  time_zone: null,
  default_country: null,
  suppression_days: null,
  updated_at: null,
}

it('changes the settings that a patch names, and clears those that are null', async () => {
  expect(await read()).toEqual(unset)
  const texts = { en: { title: 'Hello', introduction: 'Choose.' }, de: { title: 'Hallo' } }
  const first = await patch({ display_name: ' Books ', accent_color: '#0B6e4f', page_texts: texts })
  expect(first.status).toBe(200)
  const updated_at = expect.stringMatching(/Z$/)
  expect(first.body.data).toEqual({
    ...unset,
    display_name: 'Books',
    accent_color: '#0B6e4f',
    page_texts: texts,
    updated_at,
  })
  await patch({ privacy_url: 'https://books.example/privacy', contact_email: 'a@books.example', language: 'fr' })
  await patch({ display_name: null, page_texts: { de: null, en: { title: 'Hi' }, es: {} } })
  expect(await read()).toEqual({
    display_name: null,
    accent_color: '#0B6e4f',
    language: 'fr',
    privacy_url: 'https://books.example/privacy',
    contact_email: 'a@books.example',
    page_texts: { en: { title: 'Hi' } },
    time_zone: null,
    default_country: null,
    suppression_days: null,
    updated_at,
  })
  await patch({ page_texts: null })
  expect((await read()).page_texts).toEqual({})
})

it('logs each change as one of the subject settings, and nothing for a patch that changes nothing', async () => {
  const texts = { es: { title: 'Hola' }, en: { introduction: 'Choose.', title: 'Hello' } }
  for (const _ of [1, 2]) await patch({ display_name: 'Books', page_texts: texts })
  await patch({ display_name: null })
  await patch({})
  const { body } = await organization.send('GET', '/v1/changes?subject=settings')
  expect(body.data.items).toMatchObject([
    {
      sequence: 1,
      subject: 'settings',
      id: 1,
      operation: 'create',
      before: { display_name: null, page_texts: {} },
      after: { display_name: 'Books', page_texts: texts },
      actor: 'tests',
    },
    { sequence: 2, operation: 'update', before: { display_name: 'Books' }, after: { display_name: null } },
  ])
  const reader = service.sender(await service.tokenFor(organization.key, 'changes:read people:read'))
  expect((await reader('GET', '/v1/changes')).body.data.items).toEqual([])
  expect((await reader('GET', '/v1/changes?subject=settings')).status).toBe(403)
})

it('keeps both of two patches that arrive together', async () => {
  await Promise.all([patch({ display_name: 'Books' }), patch({ accent_color: '#000000' }), patch({ language: 'it' })])
  expect(await read()).toMatchObject({ display_name: 'Books', accent_color: '#000000', language: 'it' })
})

it.each([
  [{ accent_color: 'red' }, '/accent_color'],
  [{ accent_color: '#fff' }, '/accent_color'],
  [{ accent_color: '#0b6e4f;}' }, '/accent_color'],
  [{ language: 'pl' }, '/language'],
  [{ display_name: '' }, '/display_name'],
  [{ display_name: 'x'.repeat(256) }, '/display_name'],
  [{ privacy_url: 'http://books.example/' }, '/privacy_url'],
  [{ privacy_url: 'javascript:alert(1)' }, '/privacy_url'],
  [{ privacy_url: 'https://user:secret@books.example/' }, '/privacy_url'],
  [{ privacy_url: '/privacy' }, '/privacy_url'],
  [{ contact_email: 'books.example' }, '/contact_email'],
  [{ time_zone: 'CET' }, '/time_zone'],
  [{ time_zone: 'Europe/Nowhere' }, '/time_zone'],
  [{ suppression_days: 0 }, '/suppression_days'],
  [{ page_texts: { pl: { title: 'x' } } }, '/page_texts/pl'],
  [{ page_texts: { en: { heading: 'x' } } }, '/page_texts/en/heading'],
  [{ page_texts: { en: { title: 'x'.repeat(2_049) } } }, '/page_texts/en/title'],
  [{ page_texts: { de: { introduction: 'ä'.repeat(1_025) } } }, '/page_texts/de/introduction'],
  [{ font: 'Comic Sans' }, '/font'],
])('refuses %j at %s and stores nothing', async (body, at) => {
  const { status, body: refusal } = await patch({ language: 'en', ...body })
  expect([status, refusal.error, refusal.details?.map(detail => detail.path)]).toEqual([400, 'invalid_parameter', [at]])
  expect(await read()).toEqual(unset)
})

it('takes texts of 2 KiB', async () => {
  const title = 'ä'.repeat(1_024)
  expect((await patch({ page_texts: { de: { title } } })).body.data.page_texts).toEqual({ de: { title } })
})

it('needs the scopes schema:read and schema:write', async () => {
  const reader = service.sender(await service.tokenFor(organization.key, 'schema:read people:write'))
  const writer = service.sender(await service.tokenFor(organization.key, 'schema:write people:read'))
  expect([(await reader('GET', path)).status, (await reader('PATCH', path, { language: 'en' })).status]).toEqual([
    200, 403,
  ])
  expect([(await writer('GET', path)).status, (await writer('PATCH', path, { language: 'en' })).status]).toEqual([
    403, 200,
  ])
})
