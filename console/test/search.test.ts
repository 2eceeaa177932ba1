import type { Page } from 'playwright-core'
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
  await client.people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' })
  await client.stack('orders').create({ external_id: 'o-17', attribute_values: {} })
  await client.segments.create({ key: 'adults', name: 'Adults', filter: {} })
  // The first search begins the index.
  await shop.send('POST', '/v1/search', { text: 'ada', owners: ['*'] })
  await follow(service.db, [searchFollower()])
})

const search = async (page: Page, keys: string, text: string) => {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.keyboard.press(keys)
  await page.getByRole('dialog').getByRole('searchbox').fill(text)
}
const option = (page: Page, name: string | RegExp) => page.getByRole('dialog').getByRole('option', { name })

it('/ and Ctrl+K open one search, from any page, that finds people, records, segments, pages and actions', async () => {
  await open(shop, '/changes', async page => {
    await search(page, '/', 'lovlace')
    await option(page, 'Ada Lovelace').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/console/people/ada')
    await search(page, 'Control+k', 'o-17')
    await option(page, 'o-17').click()
    await page.waitForURL('**/console/records/orders/*')
    await search(page, '/', 'adul')
    await option(page, 'Adults').click()
    await page.waitForURL('**/console/people?segment=adults')
    await search(page, '/', 'webh')
    await option(page, 'Webhooks').click()
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
    await search(page, '/', 'new record')
    await option(page, 'New record: Orders').click()
    await page.getByRole('dialog', { name: 'New record' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(page.url()).toMatch(/\/records\/orders$/)
  })
})

it('the search begins with who was looked at last, and forgets them at the sign-out', async () => {
  await open(shop, '/people/ada', async page => {
    await search(page, '/', '')
    await option(page, 'Ada Lovelace').waitFor()
    // The browser keeps no name.
    const kept = () => page.evaluate<string>(`JSON.stringify(Object.entries(localStorage))`)
    expect(await kept()).toMatch(/kith\.recent\..*people/)
    expect(await kept()).not.toContain('Lovelace')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL('**/sign-in')
    expect(await kept()).not.toContain('kith.recent')
  })
})

it('the search offers only what the scopes of the session allow', async () => {
  await open(
    shop,
    '/people',
    async page => {
      await search(page, '/', 'o-17')
      await page.getByRole('dialog').getByText('Nothing is found').waitFor()
      await page.getByRole('searchbox').last().fill('e')
      await page.getByRole('dialog').getByRole('option', { name: 'People', exact: true }).waitFor()
      const offered = await page.getByRole('dialog').getByRole('option').allTextContents()
      expect(offered.filter(text => /New|Import|Webhooks|Orders|Adults/.test(text))).toEqual([])
    },
    { scope: 'people:read' },
  )
})

it('the list of a stack without searchable attributes has a search, which finds records by their identifier', async () => {
  await open(shop, '/records/orders', async page => {
    await page.getByRole('heading', { level: 1, name: 'Orders' }).waitFor()
    const field = page.getByRole('searchbox', { name: 'Search the records' })
    await field.fill('o-17')
    await page.getByText('1 record').waitFor()
    await field.fill('o-18')
    await page.getByText('The whole identifier of a record.').waitFor()
  })
})

it('the search opens the first match of all kinds with Enter, people before pages, however late they are found', async () => {
  await shop.client.people.create({ external_id: 'reporter', first_name: 'Reports', last_name: 'Reporter' })
  await follow(service.db, [searchFollower()])
  await open(shop, '/changes', async page => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    await page.route('**/v1/search', async route => {
      await answered
      await route.continue()
    })
    await search(page, '/', 'report')
    await page.getByRole('dialog').getByText('Searching…').waitFor()
    await page.keyboard.press('Enter')
    expect(await page.getByRole('dialog').getByRole('option').count()).toBe(0)
    answer()
    await page.waitForURL('**/console/people/reporter')
    await search(page, '/', 'reports')
    await option(page, 'Reports Reporter').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/console/reports')
  })
})
