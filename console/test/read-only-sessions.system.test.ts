import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { section } from '../../test/support/console-person.ts'
import { createOrders, title } from '../../test/support/console-records.ts'

const { service, open, openPerson } = useConsole()

it('a session that may only read people sees no history, no evidence and no way to write', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada', attribute_values: { city: 'Rome' } })
  await openPerson(
    organization,
    'ada',
    async page => {
      await page.getByRole('heading', { name: 'Ada', exact: true }).waitFor()
      await section(page, 'Attributes').getByText('Rome').waitFor()
      for (const name of [/^Edit/, 'More', 'As of…'])
        expect([name, await button(page, name).count()]).toEqual([name, 0])
      await page.getByText(/may not read the history/).waitFor()
      await button(page, /Email: No answer/).click()
      await dialog(page)
        .getByText(/take the scope consents:read/)
        .waitFor()
      expect(await button(page, 'Record an answer').count()).toBe(0)
    },
    { scope: 'people:read' },
  )
})

it('a session that may only read records sees no way to write, and no schema', async () => {
  const organization = await createOrders(service)
  const work = async (page: Page) => {
    await page.getByText('"total":30').waitFor()
    expect(await button(page, 'New record').count()).toBe(0)
    await page.getByRole('link', { name: 'o-2' }).click()
    await title(page, 'o-2').waitFor()
    await page.getByText('Ring twice.').waitFor()
    expect(await button(page, /^(Edit|Delete|Add)/).count()).toBe(0)
  }
  await open(organization, '/records/orders', work, { scope: 'records:read' })
})

it('a session that may only read the schema sees no way to write', async () => {
  const organization = await createOrders(service)
  const attributes = await organization.client.schema.attributes.list().all()
  const total = attributes.find(({ key }) => key === 'total')!
  const names = async (page: Page) => {
    await page.getByRole('heading', { level: 1 }).waitFor()
    return page.getByRole('main').getByRole('button').or(page.getByRole('main').getByRole('link')).allInnerTexts()
  }
  const work = async (page: Page) => {
    await page.getByRole('link', { name: 'Total' }).waitFor()
    expect(await names(page)).not.toContain('New attribute')
    expect(await names(page)).not.toContain('Show the records')
    await page.getByRole('link', { name: 'Total' }).click()
    await page.getByRole('heading', { level: 1, name: 'Total' }).waitFor()
    expect(page.url()).toContain(`/schema/attributes/${total.id}`)
    expect(await names(page)).toEqual(['Orders'])
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'Total' }).waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'Total' }).waitFor()
  }
  await open(organization, '/schema?owner=orders', work, { scope: 'schema:read' })
})

it('somebody who may only read people is not shown the import', async () => {
  const organization = await service.organization()
  await open(
    organization,
    '/people',
    async page => {
      await page.getByRole('link', { name: 'Export' }).waitFor()
      expect(await page.getByRole('navigation').getByRole('link', { name: 'Import' }).count()).toBe(0)
    },
    { scope: 'people:read exports:read' },
  )
})

it('somebody who may only look is shown no button that changes access', async () => {
  const organization = await service.organization()
  await organization.client.access.clients.create({ name: 'Website', scopes: ['people:read'] })
  await open(
    organization,
    '/access?tab=clients',
    async page => {
      await page.getByRole('row', { name: /Website/ }).waitFor()
      expect(await page.getByRole('button', { name: /New client|Revoke/ }).count()).toBe(0)
      await page.getByRole('tab', { name: 'Tokens' }).click()
      await page.getByText('No tokens yet').waitFor()
      expect(await page.getByRole('button', { name: /Create|Revoke/ }).count()).toBe(0)
    },
    { scope: 'access:read' },
  )
})
