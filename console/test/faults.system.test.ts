import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { createClient } from '../../src/auth/clients.ts'
import { codeFor } from '../../test/support/browser-session.ts'
import { useConsole } from '../../test/support/console.ts'
import { createCustomers, namesOn, searchField } from '../../test/support/console-people.ts'

const { service, browser, open } = useConsole()
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true })

it('an address that the console does not have leads back to its pages', async () => {
  await open(await service.organization(), '/no-such-page', async page => {
    await page.getByText('The console has no page at this address.').waitFor()
    await page.getByRole('link', { name: 'People' }).click()
    await page.getByRole('heading', { level: 1, name: 'People' }).waitFor()
  })
})

it('explains why a sign-in at the issuer failed, also by a word that nobody knows', async () => {
  await browser.open(async page => {
    for (const [word, text] of [
      ['no_access', 'Your account has no access to kith.'],
      ['%3Cimg%20onerror%3Dalert(1)%3E', 'The sign-in did not succeed.'],
      ['toString', 'The sign-in did not succeed.'],
    ] as const) {
      await page.goto(`${service.address}/console/sign-in?error=${word}`)
      await page.getByRole('alert').getByText(text).waitFor()
    }
  })
})

it('offers to load a page again whose code could not be loaded', async () => {
  const options = { expectedErrors: /Failed to load resource|imported module|preload/ }
  await open(
    await service.organization(),
    '/people',
    async page => {
      await page.route(/assets\/access-page/, route => route.abort())
      await page.goto(`${service.address}/console/access`)
      await page.getByText('The page could not be loaded').waitFor()
      await page.unroute(/assets\/access-page/)
      await page.getByRole('button', { name: 'Reload' }).click()
      await page.getByRole('heading', { level: 1, name: 'Access' }).waitFor()
    },
    options,
  )
})

it('an ended session leads to the sign-in and back to the page, and a page without permission asks for no retry', async () => {
  const organization = await service.organization()
  const { client_id, client_secret } = await createClient(service.db, {
    organizationKey: organization.key,
    name: 'the console',
    scope: 'people:read webhooks:read',
  })
  const work = async (page: Page) => {
    await page.route('**/v1/webhooks*', route =>
      route.fulfill({
        status: 401,
        contentType: 'application/json',
        body: JSON.stringify({
          status: 'Failed',
          error: 'unauthorized',
          message: 'The session has ended.',
          details: [],
        }),
      }),
    )
    await page.getByRole('link', { name: 'Webhooks' }).click()
    await page.getByText('Your session has ended.').waitFor()
    await page.unroute('**/v1/webhooks*')
    await page.context().clearCookies()
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Sign in as a program' }).click()
    await page.getByLabel('Client id').fill(client_id)
    await page.getByLabel('Client secret').fill(client_secret)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await heading(page, 'Webhooks').waitFor()
    await page.goto(`${service.address}/console/access?tab=sessions`)
    await page.getByText('You do not have permission for this.').first().waitFor()
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  }
  await open(organization, '/people', work, { expectedErrors: /401|403/ })
})

it('a page that fails leaves no code of the sign-in in the address', async () => {
  const organization = await service.organization()
  const link = `${service.address}/console/sign-in#code=${await codeFor(service, organization)}`
  await browser.open(async page => {
    await page.route(/assets\/sign-in-page/, route => route.abort())
    await page.goto(link)
    await page.getByText('The page could not be loaded').waitFor()
    expect(page.url()).not.toContain('code')
  })
})

it.each([
  ['that is no tag, as of a Chromium under LANG=C', ['en-US@posix']],
  ['that is no tag at all', ['xx-invalid!']],
  ['that kith does not have', ['tlh-Latn', 'xx-YY']],
])('a browser with a language %s gets English without an exception', async (_, languages) => {
  const organization = await service.organization()
  const link = `${service.address}/console/sign-in#code=${await codeFor(service, organization)}`
  await browser.open(async page => {
    const errors: string[] = []
    page.on('pageerror', error => errors.push(String(error)))
    await page.addInitScript(`for (const [name, value] of ${JSON.stringify(Object.entries({ language: languages[0], languages }))})
      Object.defineProperty(Navigator.prototype, name, { get: () => value, configurable: true })`)
    await page.goto(link)
    await page.getByRole('link', { name: 'Operations' }).click()
    // The library of the plots, which is loaded with this page, reads the language too.
    await heading(page, 'Operations').waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe('en')
    expect(errors).toEqual([])
  })
})

it('a refusal of the service is in the language of the reader, at its field and as a whole', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada' })
  const work = async (page: Page) => {
    await page.getByRole('button', { name: 'Neue Person' }).click()
    await page.getByLabel('E-Mail').fill('ada')
    await page.getByLabel('Kennung').fill('ada')
    await page.getByRole('button', { name: 'Anlegen' }).click()
    const mail = page.getByLabel('E-Mail').and(page.locator('[aria-invalid=true]:focus'))
    await mail.waitFor()
    await page.getByText('muss eine E-Mail-Adresse sein').waitFor()
    await mail.fill('')
    await page.getByText('muss eine E-Mail-Adresse sein').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Anlegen' }).click()
    await page.getByText('ist schon die Kennung eines anderen Eintrags').waitFor()
    await page.goto(`${service.address}/console/people?filter=%7B%22bad%22:1%7D`)
    await page.getByRole('alert').getByText('Der Filter ist ungültig.').waitFor()
  }
  await open(organization, '/people', work, { expectedErrors: /400|409/, locale: 'de-AT' })
})

it('a list says that the filter of an address cannot be read or is wrong, and goes on without it', async () => {
  const shop = await createCustomers(service)
  await open(
    shop,
    '/people?filter=%7Bbad&sort=last_name',
    async page => {
      for (const filter of ['[1]', '%7Bbad']) {
        await page.goto(`${service.address}/console/people?filter=${filter}&sort=last_name`)
        await page.getByRole('heading', { name: 'The filter of this address cannot be read' }).waitFor()
      }
      await page.getByRole('link', { name: 'Show the list without the filter' }).click()
      await page.waitForURL('**/people?sort=last_name')
      await expect.poll(() => namesOn(page)).toHaveLength(4)
      // A text without a letter or a digit finds no person.
      for (const text of ['+', '"', '%']) {
        await searchField(page).fill(text)
        await page.getByText(`Nobody is found for “${text}”`).waitFor()
        expect(await page.getByRole('alert').count()).toBe(0)
      }
      await page.goto(`${service.address}/console/people?filter=%7B%22bad%22:1%7D`)
      await page.getByRole('alert').getByText('/filter/bad').waitFor()
      expect(await page.getByRole('status').filter({ hasText: 'counting' }).count()).toBe(0)
      await page.goto(`${service.address}/console/records/orders?filter=%7Bbad`)
      await page.getByRole('heading', { name: 'The filter of this address cannot be read' }).waitFor()
    },
    // React reports what a page in place of another one shows.
    { expectedErrors: /Failed to load resource|The filter of the address cannot be read/ },
  )
})
