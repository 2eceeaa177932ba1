import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'
import { allScopes } from '../../test/support/service.ts'

const { service, open, openPerson } = useConsole()

it('an administrator makes a role field by field, sees what it would show of a person, and gives it to a token', async () => {
  const organization = await service.organization()
  const { client } = organization
  await client.people.create({ external_id: 'ada', first_name: 'Ada', date_of_birth: '1985-12-10' })
  await open(organization, '/access?tab=roles', async page => {
    await page.getByRole('button', { name: 'New role' }).click()
    const dialog = page.getByRole('dialog', { name: 'New role' })
    await dialog.getByRole('textbox', { name: 'Key' }).fill('desk')
    await dialog.getByRole('checkbox', { name: /Read people/ }).press('Space')
    await dialog.getByLabel('Show the values of').fill('ada')
    await dialog.getByRole('checkbox', { name: 'Write: First name' }).press('Space')
    const row = (name: string) => dialog.getByRole('row', { name: new RegExp(`^${name}`) })
    await row('First name').getByText('Ada').waitFor()
    expect(await row('Date of birth').getByText('closed').count()).toBe(1)
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('row', { name: /desk/ }).getByText('people', { exact: true }).waitFor()
    expect((await client.access.roles.get('desk')).fields).toEqual({
      people: { read: ['first_name'], write: ['first_name'] },
    })
    await page.getByRole('button', { name: 'Archive: desk' }).click()
    await page.getByText('Archived').waitFor()
  })
})

it('somebody with a role sees neither closed fields nor their columns, and the pages work', async () => {
  const organization = await service.organization()
  const { client, send } = organization
  await send('POST', '/v1/schema/attributes', { owner: 'people', key: 'diagnosis', type: 'text' })
  await client.people.create({
    external_id: 'ada',
    first_name: 'Ada',
    last_name: 'Lovelace',
    email: 'ada@example.com',
    date_of_birth: '1985-12-10',
    attribute_values: { diagnosis: 'secret' },
  })
  await client.access.roles.create({
    key: 'desk',
    scopes: allScopes.split(' ') as 'people:read'[],
    fields: { people: { read: ['first_name', 'last_name', 'email'], write: ['first_name'] } },
  })
  const expectedErrors = /403/
  await openPerson(
    organization,
    'ada',
    async page => {
      await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
      await page.waitForLoadState('networkidle')
      const text = await page.locator('body').innerText()
      for (const closed of ['1985', 'secret', 'Date of birth', 'diagnosis']) expect(text).not.toContain(closed)
      // All actions of the menu, as to delete, need all fields.
      expect(await page.getByRole('button', { name: 'More', exact: true }).count()).toBe(0)
    },
    { role: 'desk', expectedErrors },
  )
  await open(
    organization,
    '/people',
    async page => {
      await page.getByRole('link', { name: /Ada/ }).first().waitFor()
      const text = await page.locator('body').innerText()
      expect(text).toContain('ada@example.com')
    },
    { role: 'desk', expectedErrors },
  )
})
