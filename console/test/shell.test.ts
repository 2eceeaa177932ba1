import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { createClient } from '../../src/auth/clients.ts'
import { codeFor, signIn } from '../../test/support/browser-session.ts'
import { button, useConsole } from '../../test/support/console.ts'
import type { Organization } from '../../test/support/service.ts'

const { service, browser, open } = useConsole()

it('a link with a one-time code signs in, leaves no code in the address, and works once', async () => {
  const organization = await service.organization()
  const code = await codeFor(service, organization)
  await browser.open(async page => {
    const link = `${service.address}/console/sign-in#code=${code}`
    await page.goto(link)
    await page.getByRole('navigation').waitFor()
    expect(page.url()).not.toContain(code)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
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
    await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Sign in as a program' }).click()
    await page.getByLabel('Client id').fill(client_id)
    await page.getByLabel('Client secret').fill('wrong')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText('The client id or the secret is wrong.').waitFor()
    await page.getByLabel('Client secret').fill(client_secret)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
  })
})

it('shows only the pages that the scopes of the session allow', async () => {
  await open(
    await service.organization(),
    '/',
    async page => {
      const links = page.getByRole('navigation').getByRole('link')
      await links.first().waitFor()
      expect(await links.allTextContents()).toEqual(['People', 'Duplicates', 'Reports', 'Deliverability'])
    },
    { scope: 'people:read' },
  )
  // An import, and a report of records, need the definitions.
  await open(
    await service.organization(),
    '/records',
    async page => {
      const links = page.getByRole('navigation').getByRole('link')
      await links.first().waitFor()
      expect(await links.allTextContents()).toEqual(['Records', 'Changes of many'])
    },
    { scope: 'people:write records:read' },
  )
})

it('is used by the keyboard: ? lists the keys, g and a letter goes to a page', async () => {
  await open(await service.organization(), '/people', async page => {
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
  await open(
    await service.organization(),
    '/people',
    async page => {
      await page.getByRole('link', { name: 'Personen' }).waitFor()
      expect(await page.locator('html').getAttribute('lang')).toBe('de')
      await page.getByRole('combobox', { name: /Sprache/ }).selectOption('Italiano')
      await page.getByRole('link', { name: 'Persone' }).waitFor()
      await page.reload()
      await page.getByRole('link', { name: 'Persone' }).waitFor()
    },
    { locale: 'de-AT' },
  )
})

it('a page is loaded again when another tab signs in for another organization', async () => {
  const [one, other] = [await service.organization(), await service.organization()]
  await browser.open(async page => {
    const enter = async (tab: Page, organization: Organization) => {
      const [name, value] = (await signIn(service, organization)).cookie.split('=', 2) as [string, string]
      await tab.context().addCookies([{ name, value, url: service.address, httpOnly: true, sameSite: 'Strict' }])
      await tab.goto(`${service.address}/console/people`)
      await tab.getByText(organization.key, { exact: true }).waitFor()
    }
    await enter(page, one)
    const tab = await page.context().newPage()
    await enter(tab, one)
    // The first tab keeps its input when the same person signs in again.
    await button(page, 'New person').click()
    await page.getByRole('dialog').getByLabel('First name').fill('Ada')
    await enter(tab, one)
    expect(await page.getByRole('dialog').getByLabel('First name').inputValue()).toBe('Ada')
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await enter(tab, other)
    await page.getByText(other.key, { exact: true }).waitFor()
  })
})
