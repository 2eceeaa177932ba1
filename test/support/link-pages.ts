import type { Page } from 'playwright-core'
import { beforeAll } from 'vitest'
import { type TestBrowser, useBrowser } from './browser.ts'
import { linksOf, type StoredAnswer, storedAnswers } from './pages.ts'
import { useOwnService } from './service.ts'
import { dataOf, type Shop, useSharedShop } from './shop.ts'

/** A person, whose answers can be read from the consent history. */
type LinkedPerson = { external_id: string; answers(): Promise<StoredAnswer[]> }

/** The pages that consent links lead to, of an organization with a long name and purposes with texts. */
export type LinkPages = {
  browser: TestBrowser
  organization: Shop
  createPerson(body?: object): Promise<LinkedPerson>
  /** Opens every kind of page, and calls `check` on each. */
  visitAll(page: Page, check: (name: string) => Promise<void>): Promise<void>
}

/** The links of a person who has yet to confirm an answer about news. */
export const waiting = { consents: [{ consent_type_id: 2, channel: 'email', state: true }] }
export const news = { consent_type_id: 2, channel: 'email' }

const unbroken = 'Donaudampfschifffahrtsgesellschaftskapitänsmützenversand'
const settings = {
  display_name: `Books and ${unbroken}`,
  accent_color: '#ffe14d',
  privacy_url: 'https://books.example/privacy',
  contact_email: 'privacy@books.example',
}
const english = { language: 'en', text: 'I agree.\nAt any time, I may withdraw.', url: 'https://books.example/text' }

export function useLinkPages(): LinkPages {
  const service = useOwnService({ KITH_RATE_PAGES: '100000' })
  const browser = useBrowser()
  const organization = useSharedShop(
    service,
    { key: 'news', name: 'News', channels: [{ channel: 'email', double_opt_in: true }, { channel: 'sms' }] },
    { key: 'long', name: unbroken.repeat(3), description: unbroken, channels: [{ channel: 'sms' }] },
  )
  beforeAll(async () => {
    const { ok } = organization
    await ok('POST', '/v1/schema/consent-types/2/texts', english)
    await ok('POST', '/v1/schema/consent-types/2/texts', { language: 'de', text: 'Ich bin einverstanden.' })
    await ok('PATCH', '/v1/schema/settings', settings)
  })

  let people = 0
  async function createPerson(body: object = {}): Promise<LinkedPerson> {
    const external_id = `person-${++people}`
    const { id } = await dataOf(organization.send('POST', '/v1/people', { external_id, ...body }))
    return { external_id, answers: () => storedAnswers(service, organization, id) }
  }

  async function visitAll(page: Page, check: (name: string) => Promise<void>) {
    const { external_id } = await createPerson(waiting)
    const { preferences_url, unsubscribe_url, confirm_url } = await linksOf(organization, external_id, news)
    const button = (name: string) => page.getByRole('button', { name }).click()
    /** Opens the page that has a text. */
    const visit = async (text: string, open: () => Promise<unknown>) => {
      await open()
      await page.getByText(text, { exact: true }).first().waitFor()
      await check(text)
    }
    await visit('Your preferences', () => page.goto(preferences_url))
    await visit('You changed this:', async () => {
      await page.getByLabel('SMS').first().check()
      await button('Save')
    })
    await visit('You changed nothing.', async () => {
      await page.getByRole('link', { name: 'Back to your preferences' }).click()
      await button('Save')
    })
    await visit('This page was out of date. Nothing was saved. Please check your choice and save again.', async () => {
      await page.goto(preferences_url)
      await page.locator('input[name=shown]').evaluate(field => field.setAttribute('value', ''))
      await button('Save')
    })
    await visit('Do you agree to this?', () => page.goto(confirm_url!))
    await visit('You agreed to this:', () => button('Confirm'))
    await visit('Do you want to stop receiving this?', () => page.goto(unsubscribe_url))
    await visit('You are unsubscribed', () => button('Unsubscribe'))
    await visit('There is nothing to confirm', () => page.goto(confirm_url!))
    await visit('This link is not valid', () => page.goto(`${preferences_url.slice(0, -4)}AAAA`))
  }

  return { browser, organization, createPerson, visitAll }
}
