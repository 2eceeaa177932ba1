import type { Locator, Page } from 'playwright-core'
import type { Organization, Service } from './service.ts'
import { createShop } from './shop.ts'

/** Elements of the pages of records, which their tests share. */
export const title = (page: Page, name: string): Locator => page.getByRole('heading', { level: 1, name })
export const firstCells = (page: Page): Promise<(string | undefined)[]> =>
  page
    .getByRole('row')
    .evaluateAll(rows =>
      rows.slice(1).map(row => row.querySelector('[role=cell]:not(:has(input))')?.textContent?.trim()),
    )

/** An organization with a person, and orders with a total, a state and a buyer. */
export async function createOrders(service: Service): Promise<Organization> {
  const organization = await createShop(
    service,
    { key: 'orders', kind: 'item', name: 'Orders' },
    { key: 'visits', kind: 'event', name: 'Visits' },
    { owner: 'orders', key: 'total', type: 'number', name: 'Total', indexed: true },
    { owner: 'orders', key: 'state', type: 'text', enum: ['open', 'paid'] },
    { owner: 'orders', key: 'buyer', type: 'person', name: 'Buyer' },
    { owner: 'visits', key: 'order', type: 'stack', target_stack: 'orders' },
  )
  const { client } = organization
  await client.people.create({ external_id: 'grace', first_name: 'Grace' })
  await client.stack('orders').batch([
    { op: 'create', body: { external_id: 'o-1', attribute_values: { total: 10, state: 'open', buyer: 'grace' } } },
    { op: 'create', body: { external_id: 'o-2', attribute_values: { total: 30, state: 'paid', note: 'Ring twice.' } } },
    { op: 'create', body: { external_id: 'o-3', attribute_values: { total: 20, state: 'open' } } },
  ])
  await client.stack('visits').create({ external_id: 'v-1', attribute_values: { order: 'o-1' } })
  return organization
}

/** The value of an attribute of an order. */
export const storedValue = async ({ client }: Organization, external_id: string, key: string): Promise<unknown> =>
  (await client.stack('orders').get(external_id)).attribute_values[key]

/** By how many pixels the page is wider than its window. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
