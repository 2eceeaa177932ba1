import type { Page } from 'playwright-core'
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
    // A form writes only the fields that were changed in it, so the fields that another administrator has just set
    // stay.
    await page.getByRole('button', { name: 'desk', exact: true }).click()
    await client.access.roles.patch('desk', { fields: { people: { read: ['email'], write: [] } } })
    const form = page.getByRole('dialog', { name: 'desk' })
    await form.getByRole('textbox', { name: 'Name' }).fill('Front desk')
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Front desk', exact: true }).waitFor()
    expect((await client.access.roles.get('desk')).fields).toEqual({ people: { read: ['email'], write: [] } })
    await page.getByRole('button', { name: 'Archive: Front desk' }).click()
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
  await openPerson(
    organization,
    'ada',
    async page => {
      await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
      await page.waitForLoadState('networkidle')
      const text = await page.locator('body').innerText()
      for (const closed of ['1985', 'secret', 'Date of birth', 'diagnosis']) expect(text).not.toContain(closed)
    },
    { role: 'desk' },
  )
  await open(
    organization,
    '/people',
    async page => {
      await page.getByRole('link', { name: /Ada/ }).first().waitFor()
      const text = await page.locator('body').innerText()
      expect(text).toContain('ada@example.com')
    },
    { role: 'desk' },
  )
})

it('pages and sections that a role closes are not shown, and the others work', async () => {
  const organization = await service.organization()
  const { client, send } = organization
  await client.schema.stacks.create({ key: 'orders', name: 'Orders', kind: 'item' })
  await client.schema.stacks.create({ key: 'visits', name: 'Visits', kind: 'item' })
  await send('POST', '/v1/schema/attributes', { owner: 'people', key: 'visits', type: 'visits', cardinality: 'many' })
  const { record_id } = await client.stack('orders').create({ external_id: 'order-1', attribute_values: { total: 5 } })
  const { id } = await client.people.create({
    first_name: 'Ada',
    email: 'ada@example.com',
    attribute_values: { city: 'Rome' },
  })
  const role = async (key: string, fields: object) => {
    await client.access.roles.create({ key, scopes: allScopes.split(' ') as 'people:read'[], fields: fields as never })
    return { role: key }
  }
  const linksOf = (page: Page) => page.getByRole('navigation').getByRole('link').allInnerTexts()
  const answers = ['consents', 'email_consent', 'sms_consent', 'mobile_prefix', 'mobile_number']
  const desk = await role('desk', {
    people: { read: ['first_name', 'email', ...answers], write: ['email'] },
    orders: { read: [], write: [] },
  })
  // The role opens no attributes, neither of people nor of orders.
  const visit = async (path: string, name: string) =>
    open(organization, path, page => page.getByRole('heading', { name, level: 1 }).waitFor(), desk)
  await visit(`/people/${id}?by=id`, 'Ada')
  await visit(`/records/orders/${record_id}`, 'order-1')
  await open(
    organization,
    '/access',
    async page => {
      await page.getByRole('tab', { name: 'Clients', selected: true }).waitFor()
      await page.getByRole('button', { name: 'New client' }).click()
      await page.getByRole('dialog').getByRole('button', { name: /Role$/ }).click()
      expect(await page.getByRole('listbox').getByRole('option').allInnerTexts()).toEqual(['desk'])
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: 'Cancel' }).click()
      const shown = [
        'People',
        'Records',
        'Reports',
        'Schema',
        'Import',
        'Changes of many',
        'Export',
        'Consents',
        'Changes',
        'Access',
      ]
      expect(await linksOf(page)).toEqual(shown)
      // No page asks for what it may not have: the browser would log a 403.
      for (const name of shown) {
        await page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
        await page.getByRole('heading', { name, level: 1 }).waitFor()
        await page.waitForLoadState('networkidle')
      }
    },
    desk,
  )
  await openPerson(
    organization,
    `${id}?by=id`,
    async page => {
      await page.getByRole('button', { name: /^Marketing, Email/ }).click()
      await page.getByRole('dialog').getByText('The person has never answered.').waitFor()
      expect(await page.getByRole('button', { name: 'Record an answer' }).count()).toBe(0)
    },
    desk,
  )
  const whole = await role('whole', { people: { read: ['*'], write: ['*'] } })
  await openPerson(
    organization,
    `${id}?by=id`,
    async page => {
      await page.getByRole('heading', { name: 'Deliverability' }).waitFor()
      await page.waitForLoadState('networkidle')
      expect(await page.getByRole('heading', { name: 'Seen by' }).count()).toBe(0)
      expect(await page.getByRole('link', { name: /^(Ledger|Webhooks|Lifetimes|Erasures|Access log)$/ }).count()).toBe(
        0,
      )
    },
    whole,
  )
  const orders = await role('orders', { orders: { read: ['*'], write: ['*'] } })
  await open(
    organization,
    '/',
    async page => {
      await page.getByRole('heading', { name: 'Records', level: 1 }).waitFor()
      expect(await linksOf(page)).toEqual(['Records', 'Reports', 'Schema', 'Changes', 'Access'])
      await page.getByRole('link', { name: 'Reports' }).click()
      await page.getByRole('cell', { name: '1', exact: true }).waitFor()
    },
    orders,
  )
  const all = { read: ['*'], write: ['*'] }
  const everything = await role('everything', { people: all, orders: all, visits: all })
  await open(organization, '/webhooks', page => page.getByText('No webhooks yet').waitFor(), everything)
})
