import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'
import { createShop } from '../../test/support/shop.ts'

const { service, open, openPerson } = useConsole()

/** The texts of a table of linked records. */
const cells = (page: Page, name: string) =>
  page
    .getByRole('table', { name })
    .getByRole('row')
    .evaluateAll(rows => rows.map(row => [...row.children].map(cell => cell.textContent!.trim())))

/** Grace with orders that were imported in another order than they were placed. */
async function createOrders(isIndexed: boolean, count: number) {
  const shop = await createShop(
    service,
    { key: 'orders', kind: 'item', name: 'Orders' },
    { owner: 'orders', key: 'buyer', type: 'person', name: 'Buyer' },
    { owner: 'orders', key: 'total', type: 'number', name: 'Total' },
    { owner: 'orders', key: 'placed_at', type: 'datetime', name: 'Placed at', indexed: isIndexed },
    { owner: 'people', key: 'first_order', type: 'stack', target_stack: 'orders', name: 'First order' },
  )
  await shop.client.people.create({ external_id: 'grace', first_name: 'Grace' })
  const days = Array.from({ length: count }, (_, index) => ((index * 7) % count) + 1)
  await shop.client.stack('orders').batch(
    days.map(day => ({
      op: 'create' as const,
      body: {
        external_id: `o-${day}`,
        attribute_values: {
          ...{ buyer: 'grace', total: day * 1_000.5 },
          placed_at: `2026-05-${String(day).padStart(2, '0')}T10:00:00Z`,
        },
      },
    })),
  )
  await shop.client.people.patch('grace', { attribute_values: { first_order: 'o-1' } })
  return shop
}

it('linked records show the names and types of their attributes, the newest first', async () => {
  const shop = await createOrders(false, 3)
  await openPerson(shop, 'grace', async page => {
    // Both relationships lead to the first order, which is there once.
    await page.getByRole('heading', { name: 'Orders · 3' }).waitFor()
    const [header, ...rows] = await cells(page, 'Orders')
    expect(header).toEqual(['Identifier', 'Linked by', 'Placed at', 'Total'])
    expect(rows.map(([identifier, by, , total]) => [identifier, by, total])).toEqual([
      ['o-3', 'Buyer', '3,001.5'],
      ['o-2', 'Buyer', '2,001'],
      ['o-1', 'First order, Buyer', '1,000.5'],
    ])
    expect(rows[0]![2]).toMatch(/^3 May 2026|^May 3, 2026/)
    // The history shows values by their types, too.
    const history = page.getByRole('list', { name: 'History' })
    await history.getByText('First order').waitFor()
    expect(await history.getByRole('link', { name: /^o-/ }).allInnerTexts()).toEqual(['o-3', 'o-2', 'o-1'])
  })
  await open(shop, '/records/orders/o-2?by=external_id', async page => {
    await page
      .getByRole('list', { name: 'History' })
      .getByText(/^2 May 2026|^May 2, 2026/)
      .waitFor()
  })
})

it('the newest of many linked records come first if their time has an index', async () => {
  const shop = await createOrders(true, 25)
  await openPerson(shop, 'grace', async page => {
    await page.getByRole('heading', { name: 'Orders · 25' }).waitFor()
    const shown = async () => (await cells(page, 'Orders')).slice(1).map(([identifier]) => identifier)
    expect(await shown()).toEqual(Array.from({ length: 10 }, (_, index) => `o-${25 - index}`))
    await page.getByRole('button', { name: 'Show more: Orders' }).click()
    await expect.poll(shown).toEqual(Array.from({ length: 20 }, (_, index) => `o-${25 - index}`))
  })
})

it('records have their names in lists, links, headings and the links of others', async () => {
  const shop = await createOrders(false, 2)
  await shop.client.schema.stacks.patch('orders', { label: 'Order of {buyer}, {total}' })
  await open(shop, '/records/orders', async page => {
    const table = page.getByRole('table')
    await table.getByRole('columnheader', { name: 'Name' }).waitFor()
    await table
      .getByRole('row')
      .filter({ hasText: '1000.5' })
      .getByRole('link', { name: 'Grace', exact: true })
      .waitFor()
    await table.getByRole('link', { name: 'Order of Grace, 1000.5' }).click()
    await page.getByRole('heading', { level: 1, name: 'Order of Grace, 1000.5' }).waitFor()
    await page.getByRole('button', { name: 'Edit: Values' }).click()
    await page.getByLabel('Total').fill('7')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Order of Grace, 7' }).waitFor()
  })
  await openPerson(shop, 'grace', async page => {
    const [header, , first] = await cellsOf(page, 'Orders')
    expect([header![0], first![0]]).toEqual(['Name', 'Order of Grace, 7'])
  })
  await open(
    shop,
    '/schema?owner=orders',
    async page => {
      await page.getByRole('button', { name: /Edit/ }).first().click()
      await page.getByLabel('Name of a record').fill('{nothing}')
      await page.keyboard.press('Enter')
      await page.getByLabel('Name of a record').and(page.locator('[aria-invalid=true]')).waitFor()
      await page.getByLabel('Name of a record').fill('{total}')
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    },
    { expectedErrors: /400/ },
  )
  expect((await shop.client.schema.stacks.get('orders')).label).toBe('{total}')
})

/** The texts of a table of linked records, when it is there. */
async function cellsOf(page: Page, name: string) {
  await page.getByRole('table', { name }).waitFor()
  return cells(page, name)
}
