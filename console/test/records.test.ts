import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { button, useConsole } from '../../test/support/console.ts'
import { createOrders, firstCells, storedValue, title } from '../../test/support/console-records.ts'

const { service, open } = useConsole()

it('an order is corrected and the timeline tells who', async () => {
  const organization = await createOrders(service)
  const work = async (page: Page) => {
    await page
      .getByRole('row', { name: /Orders/ })
      .getByText('3', { exact: true })
      .waitFor()
    await page.getByRole('link', { name: 'Orders' }).click()
    await page.getByRole('link', { name: 'o-1' }).click()
    await title(page, 'o-1').waitFor()
    await button(page, 'Edit: Values').click()
    await page.getByLabel('Total').fill('12,5 euros')
    await page.keyboard.press('Enter')
    await page.getByText('Write a number, such as 12 or 12.5.').waitFor()
    await page.getByLabel('Total').fill('12.5')
    await page.keyboard.press('Enter')
    const [newest] = await page.getByRole('list', { name: 'History' }).getByRole('listitem').all()
    await newest!.getByText('Version 2').waitFor()
    expect(await newest!.innerText()).toMatch(/^Ada[\s\S]*Total[\s\S]*10[\s\S]*12\.5/)
    // The links lead both ways.
    const links = page.getByRole('region', { name: 'Linked people and records' })
    await links.getByRole('link', { name: 'Grace' }).waitFor()
    await links.getByRole('link', { name: 'v-1' }).click()
    await title(page, 'v-1').waitFor()
    expect(await button(page, /^Edit/).count()).toBe(0)
    await links.getByRole('link', { name: 'o-1' }).click()
    await title(page, 'o-1').waitFor()
  }
  await open(organization, '/records', work)
  expect(await storedValue(organization, 'o-1', 'total')).toBe(12.5)
})

it('a deleted order tells who deleted it, and comes back', async () => {
  const organization = await createOrders(service)
  const { record_id } = await organization.client.stack('orders').get('o-2')
  const work = async (page: Page) => {
    await button(page, 'Delete').click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText(/^Ada deleted this record on/).waitFor()
    await page.reload()
    await page.getByText(/^Ada deleted this record on/).waitFor()
    expect(await organization.client.stack('orders').count()).toMatchObject({ count: 2 })
    await button(page, 'Restore').click()
    await button(page, 'Edit: Values').waitFor()
    await page.getByText('Ring twice.').first().waitFor()
  }
  await open(organization, `/records/orders/${record_id}`, work, { expectedErrors: /404/ })
  expect(await storedValue(organization, 'o-2', 'note')).toBe('Ring twice.')
})

it('a list is sorted and filtered, and its address leads back to it', async () => {
  const organization = await createOrders(service)
  await open(organization, '/records/orders', async page => {
    await page.getByText('3 records', { exact: true }).waitFor()
    await page.getByRole('columnheader', { name: 'Total' }).getByRole('button').click()
    await expect.poll(() => firstCells(page)).toEqual(['o-1', 'o-3', 'o-2'])
    await page.getByRole('columnheader', { name: 'Total' }).getByRole('button').click()
    await expect.poll(() => firstCells(page)).toEqual(['o-2', 'o-3', 'o-1'])
    await page.keyboard.press('f')
    await page.getByRole('tab', { name: 'JSON' }).click()
    await page
      .getByRole('textbox', { name: 'The filter as the API takes it' })
      .fill('{"attribute_values.state": "open"}')
    await button(page, 'Apply').click()
    await expect.poll(() => firstCells(page)).toEqual(['o-3', 'o-1'])
    await page.getByText('2 records', { exact: true }).waitFor()
    await page.reload()
    await expect.poll(() => firstCells(page)).toEqual(['o-3', 'o-1'])
    await page.getByRole('link', { name: 'o-3' }).click()
    await title(page, 'o-3').waitFor()
    await page.goBack()
    await expect.poll(() => firstCells(page)).toEqual(['o-3', 'o-1'])
    await button(page, /^Filter/).click()
    await button(page, 'Clear the filter').click()
    await page.getByText('3 records', { exact: true }).waitFor()
  })
})

it('a record is created by the keyboard alone, and a target that does not exist is refused at its field', async () => {
  const organization = await createOrders(service)
  const work = async (page: Page) => {
    await page.getByRole('link', { name: 'o-1' }).waitFor()
    await page.keyboard.press('n')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('o-4')
    await page.keyboard.press('Tab')
    await page.keyboard.type('44')
    await page.getByLabel('Buyer').focus()
    await page.keyboard.type('nobody')
    await page.keyboard.press('Enter')
    await page
      .getByText(/does not exist|must exist|no such/i)
      .first()
      .waitFor()
    expect(await page.getByLabel('Identifier').inputValue()).toBe('o-4')
    await page.getByLabel('Create what does not exist yet as a placeholder').focus()
    await page.keyboard.press('Space')
    await button(page, 'Create').focus()
    await page.keyboard.press('Enter')
    await title(page, 'o-4').waitFor()
  }
  await open(organization, '/records/orders', work, { expectedErrors: /400/ })
  expect(await organization.client.stack('orders').get('o-4')).toMatchObject({
    attribute_values: { total: 44, buyer: 'nobody' },
  })
})
