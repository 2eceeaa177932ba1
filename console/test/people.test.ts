import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'
import {
  countIs,
  createCustomers,
  createPeople,
  customers,
  namesOn,
  refusals,
  searchField,
} from '../../test/support/console-people.ts'
import type { Organization } from '../../test/support/service.ts'

const { service, open } = useConsole()

let shop: Organization
beforeAll(async () => {
  shop = await createCustomers(service)
})

it('a support agent finds a misspelt customer, and comes back to the search', async () => {
  await open(shop, '/people', async page => {
    await countIs(page, '4 people')
    // The letters typed so far find her too, so the test waits for the answer to all of them.
    const found = page.waitForResponse(response => response.request().postData()?.includes('lovlace') === true)
    await page.keyboard.press('s')
    await page.keyboard.type('lovlace')
    await found
    await expect.poll(() => namesOn(page)).toEqual(['Ada Lovelace'])
    await page.locator('[aria-busy=false]').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/console/people/ada')
    await page.goBack()
    await expect.poll(() => namesOn(page)).toEqual(['Ada Lovelace'])
    expect(await searchField(page).inputValue()).toBe('lovlace')
    await page.goBack()
    await expect.poll(() => namesOn(page)).toHaveLength(4)
    expect(await searchField(page).inputValue()).toBe('')
  })
})

it('a marketer builds a filter with a consent and saves it as a segment', async () => {
  await open(shop, '/people', async page => {
    await countIs(page, '4 people')
    await page.keyboard.press('f')
    await page.getByRole('combobox', { name: 'Field' }).fill('city')
    await page.getByRole('option', { name: 'city' }).click()
    await page.getByRole('combobox', { name: 'Value', exact: true }).fill('London')
    await page.getByRole('button', { name: 'Add a condition' }).click()
    await page.getByRole('combobox', { name: 'Field' }).last().fill('consent')
    await page.getByRole('option', { name: 'Consent', exact: true }).click()
    await page.getByRole('group', { name: 'Condition Consent', exact: true }).waitFor()
    await page.getByRole('button', { name: /Purpose/ }).click()
    await page.getByRole('option', { name: 'marketing' }).click()
    await page.getByRole('button', { name: /Channel/ }).click()
    await page.getByRole('option', { name: 'Email' }).click()
    await page.getByText('This filter matches 1 person').waitFor()
    await page.getByRole('button', { name: 'Apply' }).click()
    await expect.poll(() => namesOn(page)).toEqual(['Grace Hopper'])
    await page.getByRole('button', { name: 'Segment', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Save the filter as a segment' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('Readers in London')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.waitForURL('**/people?segment=readers_in_london')
    await countIs(page, '1 person')
    await page.reload()
    await expect.poll(() => namesOn(page)).toEqual(['Grace Hopper'])
    const { name, filter } = await shop.client.segments.get('readers_in_london')
    expect([name, filter]).toEqual([
      'Readers in London',
      {
        'attribute_values.city': 'London',
        consents: { $some: { consent_type_id: 1, channel: 'email', state: true } },
      },
    ])
    await page.getByRole('button', { name: 'Segment', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Rename this segment' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('Londoners')
    await page.getByRole('button', { name: 'Save' }).click()
    await expect
      .poll(() => page.getByRole('combobox', { name: 'Segment' }).locator(':checked').textContent())
      .toBe('Londoners')
    await page.getByRole('button', { name: 'Segment', exact: true }).click()
    await page.getByRole('menuitem', { name: 'Delete this segment' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
    await countIs(page, '4 people')
  })
  expect(await shop.client.segments.list().all()).toEqual([])
})

it('filters by the people whom a relationship leads to, and shows the filter as JSON', async () => {
  await open(
    shop,
    '/people',
    async page => {
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.getByRole('combobox', { name: 'Field' }).fill('referrer')
      await page.getByRole('option', { name: 'referrer', exact: true }).click()
      const target = page.getByRole('group', { name: 'Conditions on people' })
      await target.getByRole('combobox', { name: 'Field' }).fill('First')
      await page.getByRole('option', { name: 'First name' }).click()
      await target.getByRole('textbox', { name: 'Value' }).fill('Grace')
      await page.getByText('This filter matches 1 person').waitFor()
      await page.getByRole('tab', { name: 'JSON' }).click()
      const json = page.getByRole('textbox', { name: 'The filter as the API takes it' })
      expect(JSON.parse(await json.inputValue())).toEqual({
        'attribute_values.referrer': { $some: { first_name: 'Grace' } },
      })
      // A mistake is shown with its path, and the text stays.
      await json.fill('{"created_at": {"$gte": "2025-01-01"}}')
      await page.getByRole('alert').getByText('/filter/created_at/$gte', { exact: true }).waitFor()
      await json.fill('{"created_at": ')
      await page.getByText('This is not JSON').waitFor()
      expect(await page.getByRole('button', { name: 'Apply' }).isDisabled()).toBe(true)
      await json.fill('{"$or": [{"first_name": "Alan"}, {"attribute_values.city": "Berlin"}]}')
      await page.getByRole('button', { name: 'Apply' }).click()
      await countIs(page, '2 people')
      await page.getByRole('tab', { name: 'Conditions' }).click()
      await page.getByRole('button', { name: /At least one of these holds/ }).waitFor()
      expect(await page.getByRole('textbox', { name: 'Value' }).nth(0).inputValue()).toBe('Alan')
    },
    refusals,
  )
})

it('an address restores search, filter, sort and columns; back and reload too', async () => {
  const filter = encodeURIComponent(JSON.stringify({ language: 'en' }))
  const columns = encodeURIComponent('email,attribute_values.city')
  await open(shop, `/people?filter=${filter}&sort=-last_name&columns=${columns}`, async page => {
    const expected = ['Alan Turing', 'Ada Lovelace', 'Grace Hopper']
    await expect.poll(() => namesOn(page)).toEqual(expected)
    const headers = page.getByRole('columnheader')
    await expect.poll(() => headers.allTextContents()).toEqual(['', 'Name', 'Email', 'city'])
    await headers.getByText('Name').click()
    await expect.poll(() => namesOn(page)).toEqual(expected.toReversed())
    await page.reload()
    await expect.poll(() => namesOn(page)).toEqual(expected.toReversed())
    await page.goBack()
    await expect.poll(() => namesOn(page)).toEqual(expected)
    // The chosen columns stay in this browser.
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('checkbox', { name: 'city' }).press('Space')
    await page.getByRole('checkbox', { name: 'Language' }).press('Space')
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    await page.goto(`${service.address}/console/people`)
    await expect.poll(() => headers.allTextContents()).toEqual(['', 'Name', 'Email', 'Language'])
  })
})

it('is used by the keyboard alone: j and k move, Enter opens, n begins a new person', async () => {
  const garage = await service.organization()
  await createPeople(garage, customers)
  await open(
    garage,
    '/people',
    async page => {
      await countIs(page, '4 people')
      const focused = () => page.evaluate<string>('document.activeElement.textContent')
      await page.keyboard.press('j')
      await expect.poll(focused).toBe('Rosa Luxemburg')
      await page.keyboard.press('j')
      await expect.poll(focused).toBe('Alan Turing')
      await page.keyboard.press('k')
      await expect.poll(focused).toBe('Rosa Luxemburg')
      await page.keyboard.press('n')
      await page.getByRole('dialog').waitFor()
      await page.keyboard.type('Mary')
      await page.keyboard.press('Tab')
      await page.keyboard.type('Shelley')
      await page.keyboard.press('Tab')
      await page.keyboard.type('no address')
      await page.keyboard.press('Enter')
      // The fault stands at its field, and nothing typed is lost.
      await page.getByRole('textbox', { name: 'Email' }).and(page.locator('[aria-invalid=true]')).waitFor()
      await page.getByRole('textbox', { name: 'Email' }).fill('mary@example.org')
      await page.getByRole('textbox', { name: 'Identifier' }).fill('mary')
      await page.keyboard.press('Enter')
      await page.waitForURL('**/console/people/mary')
      await page.goBack()
      await countIs(page, '5 people')
    },
    refusals,
  )
  expect(await garage.client.people.get('mary')).toMatchObject({ first_name: 'Mary', last_name: 'Shelley' })
})

it('a new organization learns how to begin', { timeout: 120_000 }, async () => {
  const empty = await service.organization()
  await open(empty, '/people', async page => {
    await page.getByText('No people yet: import a file, or fill in a sample shop').waitFor()
    await page.getByRole('link', { name: 'Import a file' }).click()
    await page.waitForURL('**/console/import')
    await page.goBack()
    await page.getByRole('button', { name: 'Fill in a sample shop' }).click()
    await page.getByText(/^1,0\d\d people$/).waitFor({ timeout: 90_000 })
  })
  expect((await empty.client.schema.stacks.list().all()).map(({ key }) => key).sort()).toEqual([
    ...['companies', 'orders', 'products', 'visits'],
  ])
})

it('the CSV file runs no value as a formula, has the prefix of a number, and on request the answers', async () => {
  const club = await service.organization()
  const mobile = { mobile_prefix: '+39', mobile_number: '3331234567' }
  await club.client.people.create({ external_id: 'eve', first_name: '=1+1', ...mobile, email_consent: true })
  const download = async (page: Page) => {
    const started = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export', exact: true }).click()
    const text = await readFile(await (await started).path(), 'utf8')
    const [names, cells] = text.trimEnd().split('\n')
    return names!.split(',').map((name, index) => [name, cells!.split(',')[index]])
  }
  await open(club, '/people?columns=mobile_number', async page => {
    await countIs(page, '1 person')
    await page.getByRole('button', { name: 'Export as CSV' }).click()
    expect(await download(page)).toEqual([
      ['\ufeffIdentifier', 'eve'],
      ['First name', "'=1+1"],
      ['Last name', ''],
      ['Phone prefix', "'+39"],
      ['Phone number', '3331234567'],
    ])
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /Columns/ })
      .press('Enter')
    await page.getByRole('option', { name: /consent answers/ }).press('Enter')
    await page.getByRole('checkbox', { name: 'For a spreadsheet' }).press('Space')
    const all = new Map((await download(page)) as [string, string][])
    expect(all.get('external_id')).toBe('eve')
    expect(all.get('first_name')).toBe('=1+1')
    expect(all.get('consents.1.email')).toBe('true')
  })
})

it.each([
  ['somebody who may choose rows', {}],
  ['somebody who only reads', { scope: 'people:read schema:read' }],
])(
  'the list has cards on the telephone of %s: names above the other values, without scrolling aside',
  async (_, rights) => {
    await open(
      shop,
      '/people',
      async page => {
        await countIs(page, '4 people')
        const row = page.getByRole('row', { name: /Grace Hopper/ })
        const [name, email] = await Promise.all(
          [{ name: 'Grace Hopper', exact: true }, { name: /@/ }].map(cell => row.getByRole('cell', cell).boundingBox()),
        )
        expect(email!.y).toBeGreaterThanOrEqual(name!.y + name!.height)
        expect(email!.x).toBeCloseTo(name!.x, 0)
        expect(email!.x + email!.width).toBeLessThanOrEqual(390)
        const table = page.getByRole('region', { name: 'People' })
        expect(await table.evaluate(element => element.scrollWidth - element.clientWidth)).toBe(0)
      },
      { viewport: { width: 390, height: 844 }, ...rights },
    )
  },
)
