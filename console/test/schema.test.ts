import type { Page, Route } from 'playwright-core'
import { expect, it } from 'vitest'
import { button, useConsole } from '../../test/support/console.ts'
import type { Organization } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

const { service, open } = useConsole()

/** An organization with orders of people, some of which have totals that a rule would refuse. */
async function shop(): Promise<Organization> {
  const organization = await createShop(
    service,
    { key: 'orders', kind: 'item', name: 'Orders' },
    { key: 'total', owner: 'orders', type: 'number', name: 'Total' },
    'buyer',
    { key: 'favourite', owner: 'people', type: 'stack', target_stack: 'orders' },
  )
  const { client } = organization
  await client.stack('orders').batch([
    { op: 'create', body: { external_id: 'o-1', attribute_values: { total: 5, colour: 'red' } } },
    { op: 'create', body: { external_id: 'o-2', attribute_values: { total: 50, colour: 'blue' } } },
    { op: 'create', body: { external_id: 'o-3', attribute_values: { total: 70, colour: 7 } } },
  ])
  return organization
}

const attributeOf = async ({ client }: Organization, key: string) =>
  (await client.schema.attributes.list().all()).find(attribute => attribute.key === key)

it('an engineer declares an observed key and sees what would not fit', async () => {
  const organization = await shop()
  await open(organization, '/schema?tab=observed&owner=orders', async page => {
    await button(page, 'Declare colour').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Preview' }).click()
    await dialog.getByText('2 stored values fit, 1 do not. Nothing is saved yet.').waitFor()
    await dialog.getByText('Those that do not fit are: number 1').waitFor()
    expect(await attributeOf(organization, 'colour')).toBeUndefined()
    await dialog.getByRole('button', { name: 'Declare' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('No undeclared keys').waitFor()
  })
  expect((await attributeOf(organization, 'colour'))?.type).toBe('text')
})

it('a rule is previewed before it is turned on, and what breaks it is listed afterwards', async () => {
  const organization = await shop()
  const work = async (page: Page) => {
    await page.getByRole('link', { name: 'Total' }).click()
    await button(page, 'Edit attribute').click()
    await page.getByLabel('Minimum').fill('20')
    expect(await button(page, 'Save').count()).toBe(0)
    await button(page, 'Preview').click()
    await page.getByText('1 stored entry does not fit. Nothing is saved yet.').waitFor()
    await page.getByRole('list', { name: 'Entries that do not fit' }).getByRole('link', { name: 'o-1' }).waitFor()
    expect((await attributeOf(organization, 'total'))?.minimum).toBeNull()
    await page.getByLabel('Minimum').fill('twenty')
    expect(await button(page, 'Save').count()).toBe(0)
    await button(page, 'Preview').click()
    await page.getByText('must be a number').waitFor()
    await page.getByLabel('Minimum').fill('30')
    await button(page, 'Preview').click()
    await button(page, 'Save').click()
    await page.getByText('At least 30').waitFor()
    const violations = page.getByRole('list', { name: 'Stored values that break a rule' })
    await violations.getByRole('link', { name: 'o-1' }).waitFor()
    expect(await violations.getByRole('listitem').count()).toBe(1)
  }
  await open(organization, '/schema?owner=orders', work, { expectedErrors: /400/ })
  expect((await attributeOf(organization, 'total'))?.minimum).toBe(30)
})

it('a consent type gets a new version of its text, and the old one stays', async () => {
  const organization = await service.organization()
  await organization.client.schema.consentTypes.addText(1, { language: 'en', text: 'Send me news.' })
  await open(organization, '/schema?tab=consents', async page => {
    await page.getByRole('link', { name: 'Marketing' }).click()
    await page.getByText('Send me news.').waitFor()
    await button(page, 'Edit consent type').click()
    await page.getByText('Double opt-in for Email').click()
    await button(page, 'Save').click()
    await page.getByText('Email · default · confirmed by link').waitFor()
    await button(page, 'Add a version').click()
    await page.getByLabel('Text', { exact: true }).fill('Send me news every week.')
    await button(page, 'Add a version').click()
    await page.getByText('Version 2').waitFor()
    expect(await page.getByRole('list', { name: 'Texts' }).getByRole('listitem').allInnerTexts()).toEqual([
      expect.stringMatching(/^Version 2 · en[\s\S]*Send me news every week\./),
      expect.stringMatching(/^Version 1 · en[\s\S]*Send me news\./),
    ])
  })
})

it('an engineer links a stack to another, and sees the link in the picture', async () => {
  const organization = await shop()
  await open(organization, '/schema?owner=orders', async page => {
    await page.getByRole('link', { name: 'New attribute' }).click()
    await page.getByLabel('Key').fill('replaces')
    await page.getByRole('button', { name: /Type/ }).click()
    await page.getByRole('option', { name: 'Link to a record' }).click()
    await page.getByRole('button', { name: /Links to/ }).click()
    await page.getByRole('option', { name: 'Orders (orders)' }).click()
    await button(page, 'Preview').click()
    await page.getByText('No stored value is in the way. Nothing is saved yet.').waitFor()
    await button(page, 'Create').click()
    await page.getByRole('link', { name: 'replaces' }).waitFor()
    await page.getByRole('tab', { name: 'Picture' }).click()
    await page.getByText('replaces links to Orders').waitFor()
    expect(await page.locator('[data-link="orders.replaces"]').count()).toBe(1)
  })
  expect(await attributeOf(organization, 'replaces')).toMatchObject({ type: 'stack', target_stack: 'orders' })
})

it('an engineer takes back the choice of many values before it is saved', async () => {
  const organization = await shop()
  const many = { owner: 'orders', key: 'tags', type: 'text' as const, cardinality: 'many' as const }
  await organization.client.schema.attributes.create(many)
  const choose = async (page: Page, option: string) => {
    await page.getByRole('button', { name: / Values$/ }).click()
    await page.getByRole('option', { name: option }).click()
  }
  await open(organization, '/schema?owner=orders', async page => {
    await page.getByRole('link', { name: 'Total' }).click()
    await button(page, 'Edit attribute').click()
    await choose(page, 'Several')
    await choose(page, 'One')
    await page.getByText('Nothing is changed yet.').waitFor()
    // Stored lists do not become one value.
    await page.goBack()
    await page.getByRole('link', { name: 'tags' }).click()
    await button(page, 'Edit attribute').click()
    await page.getByRole('button', { name: / Values$/ }).click()
    await page.getByRole('option', { name: 'One' }).and(page.locator('[aria-disabled=true]')).waitFor()
  })
})

it('the picture shows every stack and every relationship, as boxes and arrows and as a list', async () => {
  const organization = await shop()
  await open(organization, '/schema?tab=picture', async page => {
    const picture = page.getByRole('region', { name: 'Stacks and their links' })
    await picture.getByRole('link', { name: 'Orders' }).waitFor()
    expect(await picture.getByRole('link').count()).toBe(2)
    const arrows = await picture.locator('[data-link]').evaluateAll(paths => paths.map(path => path.textContent))
    expect(arrows.toSorted()).toEqual(['orders.buyer → people', 'people.favourite → orders'])
    const list = page.getByRole('region', { name: 'The links as a list' })
    await list.getByText('buyer links to People').waitFor()
    await list.getByText('favourite links to Orders').waitFor()
    // Each box is a link that the keyboard reaches.
    await picture.focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await expect.poll(() => page.locator(':focus').textContent()).toContain('Orders')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Orders', level: 2 }).waitFor()
    expect(new URL(page.url()).searchParams.get('owner')).toBe('orders')
  })
})

it('a stack and an attribute are created by the keyboard alone', async () => {
  const organization = await service.organization()
  await open(organization, '/schema', async page => {
    await button(page, 'New stack').focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('visits')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Visits')
    // The label comes between the name and the kind.
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('listbox').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByLabel('Erase records after (days)').focus()
    await page.keyboard.type('30')
    await page.keyboard.press('Enter')
    await page.getByText('Erased after 30 days').waitFor()
    await page.getByRole('link', { name: 'New attribute' }).focus()
    await page.keyboard.press('Enter')
    await page.getByLabel('Key').focus()
    await page.keyboard.type('page')
    await page.keyboard.press('Enter')
    await button(page, 'Create').focus()
    await page.keyboard.press('Enter')
    await page.getByRole('table').getByRole('link', { name: 'page' }).waitFor()
  })
  const { stacks, attributes } = await organization.client.schema.get()
  expect(stacks[0]).toMatchObject({ key: 'visits', name: 'Visits', kind: 'event', retention_days: 30 })
  expect(attributes[0]).toMatchObject({ owner: 'visits', key: 'page', type: 'text' })
})

it('an engineer says with whom records are erased, and what the page of a person sums up', async () => {
  const organization = await service.organization()
  const { client } = organization
  await client.schema.stacks.create({ key: 'orders', name: 'Orders', kind: 'item' })
  await client.schema.attributes.create({ key: 'buyer', name: 'Buyer', owner: 'orders', type: 'person' })
  await client.schema.attributes.create({ key: 'total', name: 'Total', owner: 'orders', type: 'number' })
  await client.schema.attributes.create({ key: 'placed', name: 'Placed at', owner: 'orders', type: 'datetime' })
  const stackOf = async () => (await client.schema.get()).stacks[0]
  await open(
    organization,
    '/schema?owner=orders',
    async page => {
      await button(page, /^Edit/).first().click()
      const box = page.getByRole('dialog')
      await box.getByRole('button', { name: /Erase records together with/ }).click()
      await page.getByRole('option', { name: 'Buyer' }).click()
      await box.getByRole('button', { name: /Sum up on the page of/ }).click()
      await page.getByRole('option', { name: 'Buyer' }).click()
      await box.getByRole('button', { name: /When a record happened/ }).click()
      await page.getByRole('option', { name: 'Placed at' }).click()
      await box.getByRole('checkbox', { name: 'Sum: Total' }).check({ force: true })
      const read = Promise.withResolvers<Route>()
      await page.route('**/v1/schema', route => read.resolve(route), { times: 1 })
      await box.getByRole('button', { name: 'Save', exact: true }).click()
      const held = await read.promise
      await page.evaluate('new Promise(painted => requestAnimationFrame(() => requestAnimationFrame(painted)))')
      expect(await box.isVisible(), 'a form that is opened before the definitions are read starts from old ones').toBe(
        true,
      )
      await held.continue()
      await box.waitFor({ state: 'detached' })
      const measures = [{ op: 'count' }, { op: 'sum', key: 'total' }]
      expect(await stackOf()).toMatchObject({
        erased_with: 'buyer',
        summary: { person: 'buyer', time: 'placed', measures },
      })

      await button(page, /^Edit/).first().click()
      await box.getByRole('checkbox', { name: 'Number' }).uncheck({ force: true })
      await box.getByRole('checkbox', { name: 'Sum: Total' }).uncheck({ force: true })
      await box.getByRole('button', { name: 'Save', exact: true }).click()
      await box.getByRole('alert').first().waitFor()
      await box.getByRole('button', { name: /Sum up on the page of/ }).click()
      await page.getByRole('option', { name: 'Of nobody' }).click()
      await box.getByRole('button', { name: 'Save', exact: true }).click()
      await box.waitFor({ state: 'detached' })
      expect(await stackOf()).toMatchObject({ erased_with: 'buyer', summary: null })
    },
    { expectedErrors: /status of 400/ },
  )
})
