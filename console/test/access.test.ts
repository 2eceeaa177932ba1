import { expect, it } from 'vitest'
import { createClient } from '../../client/index.ts'
import { signIn } from '../../test/support/browser-session.ts'
import { useConsole } from '../../test/support/console.ts'

const { service, open } = useConsole()

/** The status of a request for a token with these credentials. */
async function tokenStatus(client_id: string, client_secret: string): Promise<number> {
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
  return (await fetch(`${service.address}/oauth/token`, { method: 'POST', body })).status
}

it('an operator makes a client by keyboard, its secret is shown once, and a revoked client is refused', async () => {
  const organization = await service.organization()
  await open(organization, '/access?tab=clients', async page => {
    await page.getByRole('button', { name: 'New client' }).press('Enter')
    await page.keyboard.type('Website')
    await page.getByRole('checkbox', { name: /Read people/ }).press('Space')
    await page.getByRole('button', { name: 'Create' }).press('Enter')
    const dialog = page.getByRole('alertdialog', { name: 'The secret of the client' })
    await dialog.waitFor()
    const [id, secret] = await dialog.locator('code').allTextContents()
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    expect(await page.getByText(secret!).count()).toBe(0)
    expect(await tokenStatus(id!, secret!)).toBe(200)

    await page
      .getByRole('row', { name: /Website/ })
      .getByText('Works', { exact: true })
      .waitFor()
    await page.getByRole('button', { name: 'Revoke: Website' }).press('Enter')
    await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).press('Enter')
    await page.getByText(/^Revoked /).waitFor()
    expect(await tokenStatus(id!, secret!)).toBe(401)
  })
})

it('an operator ends the session of somebody else, who is then signed out', async () => {
  const organization = await service.organization()
  const grace = await signIn(service, organization, 'people:read', 'Grace')
  await open(organization, '/access?tab=sessions', async page => {
    await page.getByRole('button', { name: 'End the session of Grace' }).click()
    await page.getByRole('row', { name: /Grace/ }).waitFor({ state: 'detached' })
    await expect.poll(async () => (await grace.send('GET', '/console/session')).status).toBe(401)
    await page.getByRole('tab', { name: 'Keys' }).click()
    await page.getByText('Signs new tokens').waitFor()
  })
})

it('a token that the page makes works, with the scopes that were chosen, is listed and can be revoked', async () => {
  const organization = await service.organization()
  await open(organization, '/access?tab=tokens', async page => {
    await page.getByRole('checkbox', { name: /Read people/ }).press('Space')
    await page.getByRole('button', { name: 'Create' }).click()
    const token = await page.getByRole('alertdialog').locator('code').textContent()
    const client = createClient({ url: service.address, token: token! })
    expect((await client.people.list().page()).items).toEqual([])
    await expect(client.schema.get()).rejects.toMatchObject({ code: 'forbidden' })
    await page.keyboard.press('Enter')
    const row = page.getByRole('row', { name: /never/ })
    await row.getByRole('button', { name: /^Revoke: / }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke' }).click()
    await page.getByText(/^Revoked /).waitFor()
  })
})
