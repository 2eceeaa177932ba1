import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { button, useConsole } from '../../test/support/console.ts'

const { service, browser, open } = useConsole()

const password = 'a long river bends twice'

async function choosePassword(page: Page, chosen = password) {
  await page.getByLabel('Password', { exact: true }).fill(chosen)
  await page.getByLabel('The password again').fill(chosen)
  await button(page, 'Set the password and sign in').click()
}

async function signIn(page: Page, organization: string, name: string, given = password) {
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Password', { exact: true }).fill(given)
  await page.getByLabel('Organization').fill(organization)
  await button(page, 'Sign in').click()
}

/** Invites a person, and returns the link that the page shows. */
async function invite(page: Page, name: string, role: string): Promise<string> {
  await button(page, 'Invite a person').click()
  await page.getByRole('textbox', { name: 'Name' }).fill(name)
  await page.getByRole('button', { name: /Role/ }).click()
  await page.getByRole('option', { name: role }).click()
  await button(page, 'Make the link').click()
  const dialog = page.getByRole('alertdialog', { name: `The invitation of ${name}` })
  const link = await dialog.locator('code').textContent()
  await dialog.getByRole('button', { name: 'Close' }).click()
  return link!
}

it('a person is invited, accepts, signs in with a role, and is refused within ten seconds once the account is disabled', async () => {
  const organization = await service.organization()
  await organization.send('POST', '/v1/roles', { key: 'desk', name: 'Support desk', scopes: ['people:read'] })
  await open(organization, '/access', async page => {
    const link = await invite(page, 'Grace Hopper', 'Support desk')
    await browser.open(async guest => {
      await guest.goto(link)
      await guest.getByRole('heading', { name: 'Welcome, Grace Hopper' }).waitFor()
      expect(guest.url()).not.toContain('code')
      await choosePassword(guest, 'password1234')
      await guest.getByText('is one of the first passwords that are guessed').waitFor()
      await choosePassword(guest)
      await guest.getByRole('navigation').waitFor()
      expect(await guest.getByRole('navigation').getByRole('link').allTextContents()).toEqual([
        ...['People', 'Duplicates', 'Reports', 'Deliverability'],
      ])

      await button(guest, 'Sign out').click()
      await signIn(guest, organization.key, 'Grace Hopper', 'not this password')
      await guest.getByText('No account has this name and password.').waitFor()
      await signIn(guest, organization.key, 'grace hopper')
      await guest.getByTitle('Grace Hopper').waitFor()

      await guest.goto('about:blank')
      await guest.goto(link)
      await guest.getByText('This invitation no longer works.').waitFor()
      await guest.goto(`${service.address}/console/people`)
      await guest.getByTitle('Grace Hopper').waitFor()

      await page.reload()
      const row = page.getByRole('row', { name: /Grace Hopper.*desk.*Works/ })
      await row.getByRole('button', { name: 'Actions: Grace Hopper' }).click()
      await page.getByRole('menuitem', { name: 'Disable' }).click()
      await page.getByRole('alertdialog').getByRole('button', { name: 'Disable' }).click()
      await page.getByRole('row', { name: /Grace Hopper.*Disabled/ }).waitFor()
      await expect
        .poll(() => guest.evaluate(async () => (await fetch('/console/session')).status), { timeout: 10_500 })
        .toBe(401)
      await guest.goto(`${service.address}/console/sign-in`)
      await signIn(guest, organization.key, 'Grace Hopper')
      await guest.getByText('No account has this name and password.').waitFor()
    })
  })
}, 60_000)

it('the person of a sign-in link makes an account for itself, and changes its password', async () => {
  const organization = await service.organization()
  await open(
    organization,
    '/access',
    async page => {
      await button(page, 'Make my account').click()
      await page.getByRole('button', { name: /Role/ }).click()
      await page.getByRole('option', { name: 'No role: everything' }).click()
      await button(page, 'Make the link').click()
      await page.getByRole('heading', { name: 'Welcome, Operator' }).waitFor()
      await choosePassword(page)
      await page.getByTitle('Operator').waitFor()
      await button(page, 'Change password').click()
      const dialog = page.getByRole('dialog')
      const change = async (now: string) => {
        await dialog.getByLabel('Your password now').fill(now)
        await dialog.getByLabel('The new password').fill('another long river')
        await dialog.getByLabel('The password again').fill('another long river')
        await dialog.getByRole('button', { name: 'Change password' }).click()
      }
      await change('not this password')
      await dialog.getByText('is not the password').waitFor()
      await change(password)
      await dialog.getByText('The password is changed.').waitFor()
    },
    { name: 'Operator', expectedErrors: /400/ },
  )
  const [account] = await organization.client.access.accounts.list().all()
  expect(account).toMatchObject({ name: 'Operator', state: 'active' })
}, 60_000)
