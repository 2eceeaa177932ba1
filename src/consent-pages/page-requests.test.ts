import { describe, expect, it } from 'vitest'
import { useLinks } from '../../test/support/links.ts'
import { linksOf, requestPage } from '../../test/support/pages.ts'
import { startService } from '../../test/support/service.ts'

const { service, createPerson, links, tokenOf, answersOf } = useLinks()

describe('the language of a page', () => {
  const titles = {
    en: 'Your preferences',
    de: 'Ihre Einstellungen',
    fr: 'Vos préférences',
    it: 'Le sue preferenze',
    es: 'Sus preferencias',
  }

  it.each([
    ['de-AT', 'fr', 'de'],
    ['fr_CH', undefined, 'fr'],
    ['IT', 'en', 'it'],
    [undefined, 'es-MX, en;q=0.5', 'es'],
    [undefined, 'pl, it;q=0.4, fr;q=0.9, en;q=0', 'fr'],
    ['pl', 'de', 'de'],
    [undefined, 'pl', 'en'],
    [undefined, undefined, 'en'],
  ] as const)('of a person with %s and a browser with %s is %s', async (language, accepted, expected) => {
    const person = await createPerson(language && { language })
    const { preferences_url } = await links(person)
    const { text } = await requestPage(preferences_url, { headers: { 'Accept-Language': accepted ?? '' } })
    expect(text).toContain(`<html lang="${expected}">`)
    expect(text).toContain(`<h1 dir="auto">${titles[expected]}</h1>`)
  })

  it('is that of the settings if neither the person nor the browser has one, with the title of the settings', async () => {
    const other = await service.organization()
    const page_texts = { it: { title: 'Che cosa possiamo scriverle?', introduction: 'Scelga.' } }
    await other.send('PATCH', '/v1/schema/settings', { language: 'it', page_texts })
    const { external_id } = await createPerson({}, other)
    const { text } = await requestPage((await linksOf(other, external_id)).preferences_url)
    expect(text).toMatch(/<html lang="it">[\s\S]*Che cosa possiamo scriverle\?[\s\S]*Scelga\./)
  })
})

describe('the rate limit of the pages', () => {
  it('refuses the requests of one network with a page, before it reads anything, and leaves others alone', async () => {
    const limited = await startService(
      {
        KITH_RATE_PAGES: '1',
        KITH_RATE_PAGES_BURST: '3',
        KITH_BEHIND_PROXY: '1',
        KITH_PUBLIC_URL: 'https://x.example',
      },
      service.databaseUrl,
    )
    try {
      const url = `${limited.address}/p/${tokenOf((await links(await createPerson())).preferences_url)}`
      const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } })
      const replies = await Promise.all(Array.from({ length: 40 }, (_, n) => requestPage(url, from(`2001:db8::${n}`))))
      const refused = replies.filter(({ status }) => status === 429)
      expect(refused.length).toBeGreaterThan(0)
      expect(refused[0]!.headers.get('Retry-After')).toMatch(/^\d+$/)
      expect(refused[0]!.headers.get('Content-Type')).toBe('text/html; charset=utf-8')
      expect(refused[0]!.text).toContain('Too many requests')
      expect((await requestPage(url, from('2001:db8:1::1'))).status).toBe(200)
      expect((await requestPage(url, from('203.0.113.7'))).status).toBe(200)
    } finally {
      await limited.stop()
    }
  })

  it('records the address that the proxy reports, and none that is no address', async () => {
    const proxied = await startService(
      { KITH_BEHIND_PROXY: '1', KITH_PUBLIC_URL: 'https://x.example', KITH_RATE_PAGES: '1000' },
      service.databaseUrl,
    )
    try {
      for (const [reported, ip] of [
        ['198.51.100.1, 203.0.113.7', '203.0.113.7'],
        ['2001:DB8:0::7', '2001:db8::7'],
        ['unknown', undefined],
      ] as const) {
        const person = await createPerson()
        const { unsubscribe_url } = await links(person, { consent_type_id: 1, channel: 'email' })
        await requestPage(`${proxied.address}/u/${tokenOf(unsubscribe_url)}`, {
          method: 'POST',
          headers: { 'X-Forwarded-For': reported },
        })
        expect((await answersOf(person))[0]!.evidence!.ip).toBe(ip)
      }
    } finally {
      await proxied.stop()
    }
  })
})
