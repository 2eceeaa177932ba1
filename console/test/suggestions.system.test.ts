import type { Locator, Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { useConsole } from '../../test/support/console.ts'
import { follow } from '../../test/support/followers.ts'
import type { Organization } from '../../test/support/service.ts'

const { service, open } = useConsole()

let shop: Organization
beforeAll(async () => {
  shop = await service.organization()
  const { client } = shop
  await client.schema.stacks.create({ key: 'orders', name: 'Orders', kind: 'item' })
  const city = { owner: 'people', key: 'city', name: 'City', type: 'text', indexed: true } as const
  await client.schema.attributes.create(city)
  const buyer = { owner: 'orders', key: 'buyer', name: 'Buyer', type: 'person' } as const
  await client.schema.attributes.create(buyer)
  const orders = { owner: 'people', key: 'orders', name: 'Orders', type: 'stack', target_stack: 'orders' } as const
  await client.schema.attributes.create({ ...orders, cardinality: 'many' })
  for (const [external_id, first_name, city] of [
    ['c-1', 'Ada', 'Berlin'],
    ['c-2', 'Grace', 'Berlin'],
    ['c-3', 'Rosa', 'Bern'],
  ] as const)
    await client.people.create({ external_id, first_name, last_name: 'Sample', attribute_values: { city } })
  await shop.send('POST', '/v1/search', { text: 'ada', owners: ['*'] })
  await follow(service.db, [searchFollower()])
})

/** The values and labels that the fields of the page suggest. */
const suggested = async (page: Page) =>
  page
    .locator('datalist option')
    .evaluateAll(options => options.map(option => [option.getAttribute('value'), option.getAttribute('label')]))

const hasFocus = (page: Page, field: Locator) => field.and(page.locator(':focus')).waitFor()
const newRecord = (page: Page) => page.getByRole('dialog')

it('a relationship is found by the name of its target, and a text by the values that are stored', async () => {
  await open(shop, '/records/orders?create=yes', async page => {
    await newRecord(page).getByLabel('Buyer').fill('grace')
    await expect.poll(() => suggested(page)).toEqual([['c-2', 'Grace Sample']])
  })
  await open(shop, '/people?create=yes', async page => {
    await newRecord(page).getByLabel('City').fill('ber')
    await expect
      .poll(() => suggested(page))
      .toEqual([
        ['Berlin', null],
        ['Bern', null],
      ])
  })
})

it('f goes into the filter, the chosen field is replaced by typing, and Escape closes it', async () => {
  await open(shop, '/people', async page => {
    await page.getByText('3 people').waitFor()
    await page.keyboard.press('f')
    const field = page.getByRole('combobox', { name: 'Field' })
    await hasFocus(page, field)
    await page.keyboard.type('city')
    await page.keyboard.press('Enter')
    await page.getByRole('combobox', { name: 'Value', exact: true }).fill('Berl')
    await expect.poll(() => suggested(page)).toEqual([['Berlin', null]])
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Shift+Tab')
    await hasFocus(page, field)
    await page.keyboard.type('email')
    await page.keyboard.press('Enter')
    expect(await field.inputValue()).toBe('Email')
    await page.keyboard.press('Escape')
    await field.waitFor({ state: 'detached' })
    const focused = page.getByRole('button', { name: 'Filter', exact: true })
    await hasFocus(page, focused)
  })
})

it('the orders of people are one choice of the filter, although both sides name the other', async () => {
  await open(shop, '/people', async page => {
    await page.getByText('3 people').waitFor()
    await page.keyboard.press('f')
    await page.getByRole('combobox', { name: 'Field' }).fill('order')
    await expect.poll(() => page.getByRole('option').allTextContents()).toEqual(['Orders'])
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'What is asked' }).waitFor()
  })
})
