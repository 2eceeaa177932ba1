import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { accessibilityFaults } from '../../test/support/accessibility.ts'
import { useBrowser } from '../../test/support/browser.ts'
import { openConsole } from '../../test/support/console.ts'
import { follow } from '../../test/support/followers.ts'
import { type Organization, useOwnService } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

const service = useOwnService()
const browser = useBrowser()
const consoleOf = (organization: Organization) => ({ service, browser, organization })
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
const title = (page: Page, name: string) => page.getByRole('heading', { level: 1, name })

/** By how many pixels the page is wider than its window. */
const overflowOf = (page: Page) =>
  page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')

/** An organization with a person, and orders with a total, a state and a buyer. */
async function shop(): Promise<Organization> {
  const organization = await createShop(
    service,
    { key: 'orders', kind: 'item', name: 'Orders' },
    { key: 'visits', kind: 'event', name: 'Visits' },
  )
  const { client } = organization
  const attribute = { owner: 'orders', cardinality: 'one' } as const
  await client.schema.attributes.create({ ...attribute, key: 'total', type: 'number', name: 'Total', indexed: true })
  await client.schema.attributes.create({ ...attribute, key: 'state', type: 'text', enum: ['open', 'paid'] })
  await client.schema.attributes.create({ ...attribute, key: 'buyer', type: 'person', name: 'Buyer' })
  await client.schema.attributes.create({ owner: 'visits', key: 'order', type: 'stack', target_stack: 'orders' })
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
const storedValue = async ({ client }: Organization, external_id: string, key: string) =>
  (await client.stack('orders').get(external_id)).attribute_values[key]

const firstCells = (page: Page) =>
  page.getByRole('row').evaluateAll(rows => rows.slice(1).map(row => row.children[0]?.textContent?.trim()))

it('an order is corrected and the timeline tells who', async () => {
  const organization = await shop()
  const work = async (page: Page) => {
    await page
      .getByRole('row', { name: /Orders/ })
      .getByText('3', { exact: true })
      .waitFor()
    await page.getByRole('link', { name: 'Orders' }).click()
    await page.getByRole('link', { name: 'o-1' }).click()
    await title(page, 'o-1').waitFor()
    await button(page, 'Edit: Total').click()
    await page.getByLabel('Total').fill('12,5 euros')
    await page.keyboard.press('Enter')
    await page.getByText('Write a number, such as 12 or 12.5.').waitFor()
    await page.getByLabel('Total').fill('12.5')
    await page.keyboard.press('Enter')
    const [newest] = await page.getByRole('list', { name: 'History' }).getByRole('listitem').all()
    await newest!.getByText('Version 2').waitFor()
    expect(await newest!.innerText()).toMatch(/^Ada[\s\S]*Total[\s\S]*10[\s\S]*12\.5/)
    // The links lead both ways.
    await page.getByRole('region', { name: 'Links' }).getByRole('link', { name: 'grace' }).waitFor()
    await page.getByRole('region', { name: 'Links' }).getByRole('link', { name: 'v-1' }).click()
    await title(page, 'v-1').waitFor()
    expect(await button(page, /^Edit/).count()).toBe(0)
    await page.getByRole('definition').getByRole('link', { name: 'o-1' }).click()
    await title(page, 'o-1').waitFor()
  }
  await openConsole(consoleOf(organization), '/records', work)
  expect(await storedValue(organization, 'o-1', 'total')).toBe(12.5)
})

it('a deleted order tells who deleted it, and comes back', async () => {
  const organization = await shop()
  const { record_id } = await organization.client.stack('orders').get('o-2')
  const work = async (page: Page) => {
    await button(page, 'Delete').click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText(/^Ada deleted this record on/).waitFor()
    await page.reload()
    await page.getByText(/^Ada deleted this record on/).waitFor()
    expect(await organization.client.stack('orders').count()).toMatchObject({ count: 2 })
    await button(page, 'Restore').click()
    await button(page, 'Edit: Total').waitFor()
    await page.getByText('Ring twice.').first().waitFor()
  }
  await openConsole(consoleOf(organization), `/records/orders/${record_id}`, work, { expectedErrors: /404/ })
  expect(await storedValue(organization, 'o-2', 'note')).toBe('Ring twice.')
})

it('two people who edit one value see both, and a change of another value is no conflict', async () => {
  const organization = await shop()
  const orders = organization.client.stack('orders')
  const { record_id } = await orders.get('o-1')
  const work = async (page: Page) => {
    await button(page, 'Edit: Total').click()
    await page.getByLabel('Total').fill('11')
    await orders.patch('o-1', { attribute_values: { state: 'paid' } })
    await button(page, 'Save').click()
    await button(page, 'Edit: Total').waitFor()
    expect((await orders.get('o-1')).attribute_values).toMatchObject({ total: 11, state: 'paid' })
    await button(page, 'Edit: Total').click()
    await page.getByLabel('Total').fill('12')
    await orders.patch('o-1', { attribute_values: { total: 99 } })
    await button(page, 'Save').click()
    await page.getByText(/^tests wrote last, on/).waitFor()
    const conflict = page.getByRole('group', { name: 'Total' })
    expect((await conflict.innerText()).split(/\s*\n\s*/)).toEqual([
      ...['Total', 'When you began', '11', 'Theirs', '99', 'Yours', '12'],
    ])
    expect(await storedValue(organization, 'o-1', 'total')).toBe(99)
    expect(await button(page, 'Save').isDisabled()).toBe(true)
    // The choice has the focus, so that the keyboard alone decides, too.
    expect(await conflict.getByRole('radio', { name: /Theirs/ }).evaluate(element => element.matches(':focus'))).toBe(
      true,
    )
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await button(page, 'Edit: Total').waitFor()
  }
  await openConsole(consoleOf(organization), `/records/orders/${record_id}`, work, { expectedErrors: /412/ })
  expect(await storedValue(organization, 'o-1', 'total')).toBe(12)
})

it('a list is sorted and filtered, and its address leads back to it', async () => {
  const organization = await shop()
  await openConsole(consoleOf(organization), '/records/orders', async page => {
    await page.getByText('3 records').waitFor()
    await page.getByRole('columnheader', { name: 'Total' }).getByRole('button').click()
    await expect.poll(() => firstCells(page)).toEqual(['o-1', 'o-3', 'o-2'])
    await page.getByRole('columnheader', { name: 'Total' }).getByRole('button').click()
    await expect.poll(() => firstCells(page)).toEqual(['o-2', 'o-3', 'o-1'])
    await page.keyboard.press('f')
    await page.getByRole('tab', { name: 'JSON' }).click()
    await page.getByRole('dialog').getByRole('textbox').fill('{"attribute_values.state": "open"}')
    await button(page, 'Apply').click()
    await expect.poll(() => firstCells(page)).toEqual(['o-3', 'o-1'])
    await page.getByText('2 records').waitFor()
    await page.reload()
    await expect.poll(() => firstCells(page)).toEqual(['o-3', 'o-1'])
    await page.getByRole('link', { name: 'o-3' }).click()
    await title(page, 'o-3').waitFor()
    await page.goBack()
    await expect.poll(() => firstCells(page)).toEqual(['o-3', 'o-1'])
    await button(page, 'Remove the filter').click()
    await page.getByText('3 records').waitFor()
  })
})

it('a search keeps the filter, and the filter keeps the search; numeric text in the address is searched for', async () => {
  const organization = await shop()
  const attribute = { owner: 'orders', key: 'note', type: 'text', searchable: true } as const
  await organization.client.schema.attributes.create(attribute)
  await organization.client.stack('orders').batch(
    ['paid', 'open', 'open'].map((state, index) => ({
      op: 'create' as const,
      body: { external_id: `n-${index}`, attribute_values: { state, note: `ring 7${'0'.repeat(20 * index)} times` } },
    })),
  )
  await follow(service.db, [searchFollower()])
  const filter = encodeURIComponent('{"attribute_values.state":"open"}')
  await openConsole(consoleOf(organization), `/records/orders?text=ring&filter=${filter}`, async page => {
    await expect.poll(() => firstCells(page)).toEqual(['n-1', 'n-2'])
    // The router would read these as numbers, of which the second prints otherwise than it is written.
    for (const [text, found] of [
      ['7', ['n-0', 'n-1', 'n-2']],
      [`7${'0'.repeat(40)}`, ['n-2']],
    ] as const) {
      await page.goto(`${service.address}/console/records/orders?text=${text}`)
      await expect.poll(() => firstCells(page)).toEqual(found)
      expect(await page.getByRole('searchbox').inputValue()).toBe(text)
    }
    await page.goto(`${service.address}/console/records/orders?filter=${filter}&sort=attribute_values.total`)
    await page.getByText('4 records').waitFor()
    await page.getByRole('searchbox').fill('ring')
    await page.keyboard.press('Enter')
    await expect.poll(() => firstCells(page)).toEqual(['n-1', 'n-2'])
    await button(page, 'Remove the filter').click()
    await expect.poll(() => firstCells(page)).toEqual(['o-2', 'n-0', 'n-1', 'n-2'])
    expect(await page.getByRole('searchbox').inputValue()).toBe('ring')
  })
})

it('a list that is longer than its pages scrolls to its end', async () => {
  const organization = await shop()
  const operations = Array.from({ length: 350 }, (_, index) => ({
    op: 'create' as const,
    body: { external_id: `many-${index}`, attribute_values: { total: index } },
  }))
  await organization.client.stack('orders').batch(operations)
  await openConsole(consoleOf(organization), '/records/orders', async page => {
    await page.getByText('353 records').waitFor()
    const list = page.getByRole('region', { name: 'Records' })
    await list.focus()
    await expect
      .poll(async () => {
        await page.keyboard.press('End')
        return page.getByRole('link', { name: 'o-1', exact: true }).count()
      })
      .toBe(1)
    // Only the rows in sight are drawn.
    expect(await page.getByRole('row').count()).toBeLessThan(100)
    expect(await page.getByRole('row', { name: /^o-1 / }).getAttribute('aria-rowindex')).toBe('354')
  })
})

it('a record is created by the keyboard alone, and a target that does not exist is refused at its field', async () => {
  const organization = await shop()
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
  await openConsole(consoleOf(organization), '/records/orders', work, { expectedErrors: /400/ })
  expect(await organization.client.stack('orders').get('o-4')).toMatchObject({
    attribute_values: { total: 44, buyer: 'nobody' },
  })
})

it('a lost connection and a service that cannot answer lose no input', async () => {
  const organization = await shop()
  const { record_id } = await organization.client.stack('orders').get('o-1')
  const work = async (page: Page) => {
    await button(page, 'Edit: Total').click()
    await page.getByLabel('Total').fill('77')
    const address = `**/v1/stacks/orders/internal/${record_id}`
    await page.route(address, route =>
      route.fulfill({ status: 503, json: { error: 'operation_failed', message: 'Busy.', details: [] } }),
    )
    await button(page, 'Save').click()
    await page.getByRole('alert').getByText('The service cannot answer at the moment.').waitFor()
    await page.unroute(address)
    await page.route(address, route => route.abort())
    await button(page, 'Save').click()
    await page.getByRole('alert').getByText('The service cannot be reached.').waitFor()
    expect(await page.getByLabel('Total').inputValue()).toBe('77')
    await page.unroute(address)
    await button(page, 'Save').click()
    await button(page, 'Edit: Total').waitFor()
  }
  const expectedErrors = /503|net::ERR_FAILED/
  await openConsole(consoleOf(organization), `/records/orders/${record_id}`, work, { expectedErrors })
  expect(await storedValue(organization, 'o-1', 'total')).toBe(77)
})

it('a list is edited by the keyboard alone, takes lines that are pasted, and says at which value a target is missing', async () => {
  const organization = await shop()
  const { client } = organization
  await client.schema.attributes.create({ owner: 'orders', key: 'friends', type: 'person', cardinality: 'many' })
  const { record_id } = await client.stack('orders').get('o-1')
  const work = async (page: Page) => {
    await button(page, 'Edit: friends').focus()
    await page.keyboard.press('Enter')
    await page.keyboard.type('grace')
    await button(page, 'Add another value').focus()
    await page.keyboard.press('Enter')
    await page.keyboard.type('alan')
    await page.evaluate(`
      const clipboardData = new DataTransfer()
      clipboardData.setData('text', ' ada \\nkurt\\n')
      document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
    `)
    expect(await page.getByLabel('friends, value 4').inputValue()).toBe('kurt')
    await page.keyboard.press('Enter')
    await page.getByText(/^friends, value 2: names .* friends, value 3: names/).waitFor()
    await page.getByLabel('Create what does not exist yet as a placeholder').focus()
    await page.keyboard.press('Space')
    await page.getByLabel('friends, value 1').focus()
    await page.keyboard.press('Enter')
    // The focus returns to where the edit began.
    await expect.poll(() => button(page, 'Edit: friends').evaluate(element => element.matches(':focus'))).toBe(true)
    await page.keyboard.press('Enter')
    await page.getByLabel('friends, value 1').waitFor()
    await page.keyboard.press('Escape')
    await button(page, 'Edit: friends').waitFor()
  }
  await openConsole(consoleOf(organization), `/records/orders/${record_id}`, work, { expectedErrors: /400/ })
  expect(await storedValue(organization, 'o-1', 'friends')).toEqual(['grace', 'alan', 'ada', 'kurt'])
})

it('hostile identifiers, keys and values are text, and the page keeps its layout', async () => {
  const organization = await shop()
  const { client } = organization
  const hostile = '<img src=x onerror=alert(1)>\u202Egnp.exe'
  const long = 'x'.repeat(65_000)
  const { record_id } = await client.stack('orders').create({
    external_id: hostile,
    attribute_values: { [hostile]: hostile, [`${'k'.repeat(100)}`]: long, script: { '</script><b>': [null, hostile] } },
  })
  await openConsole(consoleOf(organization), '/records/orders', async page => {
    await page.getByRole('link', { name: '<img src=x' }).click()
    await title(page, '<img src=x').waitFor()
    await page.getByRole('definition').getByText('<img src=x').first().waitFor()
    await button(page, 'Edit: script').click()
    expect(JSON.parse(await page.getByLabel('script').inputValue())).toEqual({ '</script><b>': [null, hostile] })
    await page.getByLabel('script').fill('{"a": ')
    await button(page, 'Save').click()
    await page.getByText(/^This is not JSON/).waitFor()
    await page.keyboard.press('Escape')
    await page.getByLabel('Add a value under a new key').fill('a/b~c "d"')
    await button(page, 'Add').click()
    await page.getByLabel('a/b~c "d"').fill('"<i>e</i>"')
    await button(page, 'Save').click()
    await button(page, 'Edit: a/b~c "d"').waitFor()
    await page.getByRole('definition').getByText('<i>e</i>').first().waitFor()
    expect(await page.locator('img[src=x], main b, main i').count()).toBe(0)
    expect(await overflowOf(page)).toBe(0)
  })
  expect((await client.stack('orders').getById(record_id)).attribute_values['a/b~c "d"']).toBe('<i>e</i>')
})

it('a session that may only read records sees no way to write, and no schema', async () => {
  const organization = await shop()
  const work = async (page: Page) => {
    await page.getByText('"total":30').waitFor()
    expect(await button(page, 'New record').count()).toBe(0)
    await page.getByRole('link', { name: 'o-2' }).click()
    await title(page, 'o-2').waitFor()
    await page.getByText('Ring twice.').waitFor()
    expect(await button(page, /^(Edit|Delete|Add)/).count()).toBe(0)
  }
  await openConsole(consoleOf(organization), '/records/orders', work, { scope: 'records:read' })
})

it.each([
  { width: 1280, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
] as const)('has no faults of accessibility at $width pixels in $colorScheme', async ({ width, colorScheme }) => {
  const organization = await shop()
  const work = async (page: Page) => {
    const check = async (name: string) => {
      expect([name, await accessibilityFaults(page)]).toEqual([name, []])
      expect([name, await overflowOf(page)]).toEqual([name, 0])
    }
    await page.getByRole('link', { name: 'Orders' }).waitFor()
    await check('stacks')
    await page.getByRole('link', { name: 'Orders' }).click()
    await page.getByRole('link', { name: 'o-1' }).waitFor()
    await check('records')
    await page.keyboard.press('n')
    await page.getByRole('dialog').waitFor()
    await check('new record')
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'o-1' }).click()
    await page.getByRole('link', { name: 'v-1' }).waitFor()
    await check('record')
    await button(page, 'Edit: Buyer').click()
    await check('editor')
  }
  const context = { viewport: { width, height: 740 }, colorScheme }
  await openConsole(consoleOf(organization), '/records', work, { context })
})
