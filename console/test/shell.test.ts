import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { createClient } from '../../src/auth/clients.ts'
import { accessibilityFaults } from '../../test/support/accessibility.ts'
import { useBrowser } from '../../test/support/browser.ts'
import { codeFor } from '../../test/support/browser-session.ts'
import { openConsole } from '../../test/support/console.ts'
import { useService } from '../../test/support/service.ts'

const service = useService()
const browser = useBrowser()
const consoleOf = async () => ({ service, browser, organization: await service.organization() })

it('a link with a one-time code signs in, leaves no code in the address, and works once', async () => {
  const organization = await service.organization()
  const code = await codeFor(service, organization)
  await browser.open(async page => {
    const link = `${service.address}/console/sign-in#code=${code}`
    await page.goto(link)
    await page.getByRole('navigation').waitFor()
    expect(page.url()).not.toContain(code)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    await page.goto('about:blank')
    await page.goto(link)
    await page.getByText('This link no longer works.').waitFor()
  })
})

it('without a session asks to sign in, and then shows the page that was asked for', async () => {
  const organization = await service.organization()
  const { client_id, client_secret } = await createClient(service.db, {
    organizationKey: organization.key,
    name: 'the console',
    scope: 'people:read webhooks:read',
  })
  await browser.open(async page => {
    await page.goto(`${service.address}/console/webhooks`)
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByLabel('Client id').fill(client_id)
    await page.getByLabel('Client secret').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The client id or the secret is wrong.').waitFor()
    await page.getByLabel('Client secret').fill(client_secret)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
  })
})

it('shows only the pages that the scopes of the session allow', async () => {
  await openConsole(
    await consoleOf(),
    '/',
    async page => {
      const links = page.getByRole('navigation').getByRole('link')
      await links.first().waitFor()
      expect(await links.allTextContents()).toEqual(['People', 'Export'])
    },
    { scope: 'people:read' },
  )
})

it('is used by the keyboard: ? lists the keys, g and a letter goes to a page', async () => {
  await openConsole(await consoleOf(), '/people', async page => {
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('Go to Webhooks').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('g')
    await page.keyboard.press('w')
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
  })
})

it('speaks the language of the browser, and another if asked', async () => {
  await openConsole(
    await consoleOf(),
    '/people',
    async page => {
      await page.getByRole('link', { name: 'Personen' }).waitFor()
      expect(await page.locator('html').getAttribute('lang')).toBe('de')
      await page.getByRole('button', { name: /Sprache/ }).click()
      await page.getByRole('option', { name: 'Italiano' }).click()
      await page.getByRole('link', { name: 'Persone' }).waitFor()
      await page.reload()
      await page.getByRole('link', { name: 'Persone' }).waitFor()
    },
    { context: { locale: 'de-AT' } },
  )
})

it('an address that the console does not have leads back to its pages', async () => {
  await openConsole(await consoleOf(), '/no-such-page', async page => {
    await page.getByText('The console has no page at this address.').waitFor()
    await page.getByRole('link', { name: 'People' }).click()
    await page.getByRole('heading', { level: 1, name: 'People' }).waitFor()
  })
})

it.each([
  ['light', 360],
  ['dark', 1280],
] as const)('has no violation of WCAG 2.2 AA in %s at %d px', async (colorScheme, width) => {
  await openConsole(
    await consoleOf(),
    '/people',
    async page => {
      await page.getByRole('heading', { level: 1 }).waitFor()
      expect(await accessibilityFaults(page)).toEqual([])
    },
    { context: { colorScheme, viewport: { width, height: 740 } } },
  )
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
  await openConsole(
    await consoleOf(),
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

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true })
const headingFocus = (page: Page, name: string) => page.locator('h1:focus').and(heading(page, name))

it('gives the focus to the heading after a navigation, and asks once for a person who does not exist', async () => {
  const place = await consoleOf()
  await place.organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  const work = async (page: Page) => {
    await page.getByRole('link', { name: 'Ada' }).waitFor()
    // The first page of a document begins at its top.
    expect(await page.locator('h1:focus').count()).toBe(0)
    await page.keyboard.press('j')
    await page.locator('a:focus', { hasText: 'Ada' }).waitFor()
    await page.keyboard.press('Enter')
    await headingFocus(page, 'Ada').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('w')
    await headingFocus(page, 'Webhooks').waitFor()
    await page.getByRole('link', { name: 'Schema' }).click()
    await headingFocus(page, 'Schema').waitFor()
    const refused: string[] = []
    page.on('response', response => response.status() === 404 && refused.push(response.url()))
    await page.goto(`${service.address}/console/people/nobody`)
    await page.getByText('Nobody has this identifier').waitFor()
    expect(refused).toHaveLength(1)
  }
  await openConsole(place, '/people', work, { expectedErrors: /404/ })
})

it('an ended session leads to the sign-in and back to the page, and a page without permission asks for no retry', async () => {
  const place = await consoleOf()
  const { client_id, client_secret } = await createClient(service.db, {
    organizationKey: place.organization.key,
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
    await page.getByLabel('Client id').fill(client_id)
    await page.getByLabel('Client secret').fill(client_secret)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await heading(page, 'Webhooks').waitFor()
    await page.goto(`${service.address}/console/access?tab=sessions`)
    await page.getByText('You do not have permission for this.').first().waitFor()
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  }
  await openConsole(place, '/people', work, { expectedErrors: /401|403/ })
})

it('a browser with an invalid locale gets English, and a page that fails leaves no code in the address', async () => {
  const organization = await service.organization()
  const link = `${service.address}/console/sign-in#code=${await codeFor(service, organization)}`
  await browser.open(async page => {
    const errors: string[] = []
    page.on('pageerror', error => errors.push(String(error)))
    // As a Chromium under LANG=C.
    await page.addInitScript(`for (const [name, value] of [['language', 'en-US@posix'], ['languages', ['en-US@posix']]])
      Object.defineProperty(Navigator.prototype, name, { get: () => value, configurable: true })`)
    await page.route(/assets\/sign-in-page/, route => route.abort())
    await page.goto(link)
    await page.getByText('The page could not be loaded').waitFor()
    expect(page.url()).not.toContain('code')
    await page.unroute(/assets\/sign-in-page/)
    await page.goto('about:blank')
    await page.goto(link)
    await page.getByRole('link', { name: 'Operations' }).click()
    // The library of the plots, which is loaded with this page, reads the language too.
    await heading(page, 'Operations').waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe('en')
    expect(errors).toEqual([])
  })
})

it('shows a long name of the session in one line, and headers that are not cut, in every language', async () => {
  const place = await consoleOf()
  await place.organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  const name = 'Customer service (default.Ar7kQ0x9Zb3LmN5p)'
  for (const locale of ['en-GB', 'de-DE', 'it-IT'])
    await openConsole(
      place,
      `/people?columns=${encodeURIComponent('mobile_prefix,mobile_number,created_at')}`,
      async page => {
        await page.getByRole('columnheader').first().waitFor()
        const cut =
          '[...document.querySelectorAll("[role=columnheader]")].filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length'
        expect(await page.evaluate(cut)).toBe(0)
        const shown = page.getByText(name)
        expect(await shown.getAttribute('title')).toBe(name)
        // Two lines would have 38 pixels.
        expect((await shown.boundingBox())!.height).toBeLessThan(30)
      },
      { name, context: { locale } },
    )
})

it('the announcement of a pending button keeps its text after the button is gone', async () => {
  const place = await consoleOf()
  await place.organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  await openConsole(place, '/people/ada', async page => {
    await page.getByRole('button', { name: /^Marketing, Email/ }).click()
    await page.getByRole('button', { name: 'Record an answer' }).click()
    await page.getByRole('button', { name: /Answer$/ }).click()
    await page.getByRole('option').first().click()
    const announced = page.locator('[data-live-announcer]').getByText('Recording…')
    await page.route('**/v1/people/internal/*', async route => {
      await announced.waitFor({ state: 'attached' })
      await route.continue()
    })
    await page.getByRole('button', { name: 'Record the answer' }).press('Enter')
    await page.getByRole('button', { name: 'Record an answer' }).waitFor()
    // The button is gone, and its announcement is still there.
    expect(await announced.count()).toBe(1)
    expect(await accessibilityFaults(page)).toEqual([])
  })
})
