import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { accessibilityFaults } from '../../test/support/accessibility.ts'
import { useBrowser } from '../../test/support/browser.ts'
import { openConsole } from '../../test/support/console.ts'
import { follow } from '../../test/support/followers.ts'
import { insertManyPeople } from '../../test/support/many-people.ts'
import { type Organization, useService } from '../../test/support/service.ts'
import { createShop, useSharedShop } from '../../test/support/shop.ts'

const service = useService()
const browser = useBrowser()
const open = (
  organization: Organization,
  path: string,
  work: (page: Page) => Promise<void>,
  options: Parameters<typeof openConsole>[3] = {},
) => openConsole({ service, browser, organization }, path, work, options)

/** The browser reports each response that is a refusal. */
const refusals = { expectedErrors: /Failed to load resource/ }

const index = () => follow(service.db, [searchFollower()])
const create = (organization: Organization, bodies: object[]) =>
  organization.client.people.batch(bodies.map(body => ({ op: 'create', body }))) as Promise<unknown>

/** The names in the rows that are in sight, in order. */
const namesOn = (page: Page) => page.getByRole('table').getByRole('link').allTextContents()
const nameIn = (page: Page, name: string) => page.getByRole('table').getByRole('link', { name, exact: true })
const searchField = (page: Page) => page.getByRole('searchbox', { name: 'Search people' })
const countIs = (page: Page, text: string) => page.getByRole('status').filter({ hasText: text }).first().waitFor()

const customers = [
  { external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.org', language: 'en' },
  { external_id: 'grace', first_name: 'Grace', last_name: 'Hopper', email: 'grace@example.org', language: 'en' },
  { external_id: 'alan', first_name: 'Alan', last_name: 'Turing', language: 'en' },
  { external_id: 'rosa', first_name: 'Rosa', last_name: 'Luxemburg', email: 'rosa@example.org', language: 'de' },
]

const shop = useSharedShop(service, 'city', { key: 'loyalty', owner: 'people', type: 'number' }, 'referrer')
beforeAll(async () => {
  await create(shop, customers)
  await shop.client.people.patch('ada', { attribute_values: { city: 'London', loyalty: 3, referrer: 'grace' } })
  await shop.client.people.patch('rosa', { attribute_values: { city: 'Berlin', loyalty: 20, referrer: 'ada' } })
  await shop.client.people.patch('grace', { email_consent: true, attribute_values: { city: 'London', loyalty: 100 } })
  await shop.client.people.patch('rosa', { email_consent: true })
  await index()
})

describe('the list of people', () => {
  it('a support agent finds a misspelt customer, and comes back to the search', async () => {
    await open(shop, '/people', async page => {
      await countIs(page, '4 people')
      // The letters typed so far find her too, so the test waits for the answer to all of them.
      const found = page.waitForResponse(response => response.request().postData()?.includes('lovlace') === true)
      await page.keyboard.press('/')
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
      await page.getByRole('textbox', { name: 'Value' }).fill('London')
      await page.getByRole('button', { name: 'Add a condition' }).click()
      await page.getByRole('combobox', { name: 'Field' }).last().fill('consent')
      await page.getByRole('option', { name: 'Consent', exact: true }).click()
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
    })
    const { name, filter } = await shop.client.segments.get('readers_in_london')
    expect([name, filter]).toEqual([
      'Readers in London',
      {
        'attribute_values.city': 'London',
        consents: { $some: { consent_type_id: 1, channel: 'email', state: true } },
      },
    ])
    await open(shop, '/people?segment=readers_in_london', async page => {
      await expect.poll(() => namesOn(page)).toEqual(['Grace Hopper'])
      await page.getByRole('button', { name: 'Segment', exact: true }).click()
      await page.getByRole('menuitem', { name: 'Rename this segment' }).click()
      await page.getByRole('textbox', { name: 'Name' }).fill('Londoners')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('button', { name: /Londoners/ }).waitFor()
      await page.getByRole('button', { name: 'Segment', exact: true }).click()
      await page.getByRole('menuitem', { name: 'Delete this segment' }).click()
      await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
      await countIs(page, '4 people')
    })
    expect(await shop.client.segments.list()).toEqual([])
  })

  it('filters by the people whom a relationship leads to, and shows the filter as JSON', async () => {
    await open(
      shop,
      '/people',
      async page => {
        await page.getByRole('button', { name: 'Filter' }).click()
        await page.getByRole('combobox', { name: 'Field' }).fill('referrer')
        await page.getByRole('option', { name: 'referrer' }).click()
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
      await expect.poll(() => headers.allTextContents()).toEqual(['Name', 'Email', 'city'])
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
      await expect.poll(() => headers.allTextContents()).toEqual(['Name', 'Email', 'Language'])
    })
  })

  it('says that an attribute without an index sorts nothing, and indexes it', async () => {
    const path = `/people?columns=${encodeURIComponent('attribute_values.loyalty')}`
    const readOnly = { scope: 'people:read schema:read' }
    await open(
      shop,
      path,
      async page => {
        await page.getByRole('button', { name: 'loyalty' }).click()
        await page.getByText('Somebody with the scope schema:write can turn on').waitFor()
        expect(await page.getByRole('button', { name: 'Index it' }).count()).toBe(0)
        expect(await page.getByRole('button', { name: 'New person' }).count()).toBe(0)
      },
      readOnly,
    )
    await open(shop, path, async page => {
      await page.getByRole('button', { name: 'loyalty' }).click()
      await page.getByRole('button', { name: 'Index it' }).click()
      await page.getByText('The index is being built').waitFor()
      await backfillIndexes(service.db)
      await expect.poll(() => namesOn(page)).toEqual(['Ada Lovelace', 'Rosa Luxemburg', 'Grace Hopper', 'Alan Turing'])
    })
  })

  it('is used by the keyboard alone: j and k move, Enter opens, n begins a new person', async () => {
    const garage = await service.organization()
    await create(garage, customers)
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
        await page.getByRole('textbox', { name: 'External id' }).fill('mary')
        await page.keyboard.press('Enter')
        await page.waitForURL('**/console/people/mary')
        await page.goBack()
        await countIs(page, '5 people')
      },
      refusals,
    )
    expect(await garage.client.people.get('mary')).toMatchObject({ first_name: 'Mary', last_name: 'Shelley' })
  })
})

describe('a page that is longer than its window', () => {
  it('scrolls once: a nested filter keeps its tabs, and hidden texts make the window no longer', async () => {
    const deep = { $and: Array.from({ length: 3 }, (_, number) => ({ language: `l${number}` })) }
    const filter = { $or: [deep, { $not: deep }, { 'attribute_values.referrer': { $some: deep } }] }
    // How much longer than its window each scrolled element is, the window among them.
    const overflow = (page: Page) =>
      page.evaluate<[string, number][]>(
        `[document.documentElement, ...document.querySelectorAll('main, main *')]
          .filter(element => element === document.documentElement || /auto|scroll/.test(getComputedStyle(element).overflowY))
          .map(element => [element.getAttribute('role') ?? element.localName, element.scrollHeight - element.clientHeight])
          .filter(([, pixels]) => pixels > 0)`,
      )
    await open(
      shop,
      `/people?filter=${encodeURIComponent(JSON.stringify(filter))}`,
      async page => {
        await page.getByText('Nobody matches the filter').or(page.getByRole('table')).first().waitFor()
        await page.getByRole('button', { name: /^Filter/ }).click()
        await page.getByRole('tab', { name: 'Conditions' }).waitFor()
        await page.getByRole('textbox', { name: 'Value' }).nth(8).waitFor()
        expect(await overflow(page)).toEqual([['main', expect.any(Number)]])
        for (const width of [1_280, 360]) {
          await page.setViewportSize({ width, height: 400 })
          await page.goto(`${service.address}/console/people/ada`)
          await page.getByRole('list', { name: 'History' }).waitFor()
          await page.getByText('Loading…').first().waitFor({ state: 'hidden' })
          expect(await overflow(page)).toEqual([['main', expect.any(Number)]])
        }
      },
      { context: { viewport: { width: 1_280, height: 720 } } },
    )
  })
})

describe('a list of people that fails', () => {
  it('says that the filter of an address cannot be read or is wrong, and goes on without it', async () => {
    await open(
      shop,
      '/people?filter=%7Bbad&sort=last_name',
      async page => {
        for (const filter of ['[1]', '%7Bbad']) {
          await page.goto(`${service.address}/console/people?filter=${filter}&sort=last_name`)
          await page.getByRole('heading', { name: 'The filter of this address cannot be read' }).waitFor()
        }
        expect(await accessibilityFaults(page)).toEqual([])
        await page.getByRole('link', { name: 'Show the list without the filter' }).click()
        await page.waitForURL('**/people?sort=last_name')
        await expect.poll(() => namesOn(page)).toHaveLength(4)
        // No letter and no digit finds nobody.
        for (const text of ['+', '"', '%']) {
          await searchField(page).fill(text)
          await page.getByText(`Nobody is found for “${text}”`).waitFor()
          expect(await page.getByRole('alert').count()).toBe(0)
        }
        await page.goto(`${service.address}/console/people?filter=%7B%22bad%22:1%7D`)
        await page.getByRole('alert').getByText('/filter/bad').waitFor()
        expect(await page.getByRole('status').filter({ hasText: 'counting' }).count()).toBe(0)
        await page.goto(`${service.address}/console/records/orders?filter=%7Bbad`)
        await page.getByRole('heading', { name: 'The filter of this address cannot be read' }).waitFor()
      },
      // React reports what a page in place of another one shows.
      { expectedErrors: /Failed to load resource|The filter of the address cannot be read/ },
    )
  })

  it('keeps what was typed while the service is away, and goes on when it is back', async () => {
    await open(
      shop,
      '/people',
      async page => {
        await countIs(page, '4 people')
        const body = JSON.stringify({ status: 'Failed', error: 'operation_failed', message: 'Busy.', details: [] })
        await page.route('**/v1/people/search', route =>
          route.fulfill({ status: 503, contentType: 'application/json', body }),
        )
        await searchField(page).fill('turing')
        await page.getByText('The service cannot answer at the moment.').waitFor()
        expect(await searchField(page).inputValue()).toBe('turing')
        await page.unroute('**/v1/people/search')
        await page.getByRole('button', { name: 'Try again' }).click()
        await nameIn(page, 'Alan Turing').waitFor()
        await expect.poll(() => page.getByText('The service cannot answer').count()).toBe(0)

        await page.getByRole('button', { name: 'New person' }).click()
        await page.getByRole('textbox', { name: 'First name' }).fill('Lost')
        await page.route('**/v1/people', route => route.abort())
        await page.getByRole('button', { name: 'Create', exact: true }).click()
        await page.getByText('The service cannot be reached.').waitFor()
        expect(await page.getByRole('textbox', { name: 'First name' }).inputValue()).toBe('Lost')
      },
      refusals,
    )
  })
})

describe('a new organization', () => {
  it('learns how to begin', async () => {
    const empty = await service.organization()
    await open(empty, '/people', async page => {
      await page.getByText('No people yet: import a file, or fill in a sample shop').waitFor()
      await page.getByText('npm run -s kith -- seed').waitFor()
      expect(await accessibilityFaults(page)).toEqual([])
      await page.getByRole('link', { name: 'Import a file' }).click()
      await page.waitForURL('**/console/import')
    })
  })
})

describe('hostile values', () => {
  const image = '<img src=x onerror="document.title=\'owned\'">'
  const rightToLeft = '\u202eevil\u202c عمر'

  it('are text, and keep the page in its form', async () => {
    const target = await createShop(service, { key: 'note', owner: 'people', type: 'text' })
    const note = 'x'.repeat(65_000)
    await create(target, [
      { external_id: 'image', first_name: image, last_name: '"; alert(1) //', attribute_values: { note: image } },
      { external_id: 'rtl', first_name: rightToLeft, attribute_values: { note: rightToLeft } },
      { external_id: 'long', first_name: 'L'.repeat(255), attribute_values: { note } },
    ])
    await index()
    const path = `/people?columns=${encodeURIComponent('external_id,attribute_values.note')}`
    await open(target, path, async page => {
      await countIs(page, '3 people')
      await page.getByRole('link', { name: `${image} "; alert(1) //` }).waitFor()
      expect(await page.locator('main img').count()).toBe(0)
      expect(await page.title()).toBe('People · kith')
      const overflow = () => page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      expect(await overflow()).toBeLessThanOrEqual(0)
      await page.setViewportSize({ width: 360, height: 740 })
      expect(await overflow()).toBeLessThanOrEqual(0)
      // A hostile address is no order and no column.
      await page.goto(`${service.address}/console/people?sort=%3Cscript%3E&columns=%3Cimg%3E&text=7`)
      await page.getByText('Nobody is found for').waitFor()
    })
  })
})

const count = 1_234
const bodies = Array.from({ length: count }, (_, number) => ({
  external_id: `p${number}`,
  first_name: `Quote "${number}"`,
  language: number % 2 ? 'en' : 'de',
}))
const stock = useSharedShop(service)
beforeAll(async () => {
  for (let start = 0; start < count; start += 1_000) await create(stock, bodies.slice(start, start + 1_000))
})

describe('the CSV file', () => {
  it('has everybody of the filter in the order of the list, and goes on after a lost connection', async () => {
    const filter = encodeURIComponent(JSON.stringify({ language: 'en' }))
    await open(
      stock,
      `/people?filter=${filter}&columns=language&sort=external_id`,
      async page => {
        await countIs(page, '617 people')
        await page.getByRole('button', { name: 'Export as CSV' }).click()
        let requests = 0
        let isBroken = true
        await page.route('**/v1/people/filter', route =>
          ++requests > 1 && isBroken ? route.abort() : route.continue(),
        )
        const started = page.waitForEvent('download')
        await page.getByRole('button', { name: 'Export', exact: true }).click()
        await page.getByText('The export waits.').waitFor()
        isBroken = false
        await page.getByRole('button', { name: 'Go on now' }).click()
        const text = await readFile(await (await started).path(), 'utf8')
        await page.getByText('617 exported.').waitFor()
        expect(text.startsWith('\ufeffexternal_id,first_name,last_name,language\n')).toBe(true)
        const lines = text.trimEnd().split('\n')
        expect(lines.slice(1)).toEqual(
          bodies
            .filter(({ language }) => language === 'en')
            .map(({ external_id, first_name }) => `${external_id},"${first_name.replaceAll('"', '""')}",,en`)
            .sort(),
        )
      },
      refusals,
    )
  })

  it('runs no value as a formula, has the prefix of a number, and on request the answers', async () => {
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
        ['\ufeffexternal_id', 'eve'],
        ['first_name', "'=1+1"],
        ['last_name', ''],
        ['mobile_prefix', "'+39"],
        ['mobile_number', '3331234567'],
      ])
      await page
        .getByRole('dialog')
        .getByRole('button', { name: /Columns/ })
        .press('Enter')
      await page.getByRole('option', { name: /consent answers/ }).press('Enter')
      await page.getByRole('checkbox', { name: 'Safe for spreadsheets' }).press('Space')
      const all = new Map((await download(page)) as [string, string][])
      expect(all.get('external_id')).toBe('eve')
      expect(all.get('first_name')).toBe('=1+1')
      expect(all.get('consents.1.email')).toBe('true')
    })
  })

  it('is not made if the export is cancelled, and then has everybody of all pages', async () => {
    await open(stock, '/people', async page => {
      await countIs(page, '1,234 people')
      await page.getByRole('button', { name: 'Export as CSV' }).click()
      // The page of the export never comes.
      const asked = new Promise<void>(resolve => page.route(/v1\/people(\?|\/list)/, () => resolve()))
      await page.getByRole('button', { name: 'Export', exact: true }).click()
      await asked
      await page.getByRole('button', { name: 'Cancel' }).click()
      await page.getByText('Cancelled. No file was saved.').waitFor()
      await page.unrouteAll()
      const started = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Export', exact: true }).click()
      const text = await readFile(await (await started).path(), 'utf8')
      const identifiers = text
        .trimEnd()
        .split('\n')
        .slice(1)
        .map(line => line.split(',')[0])
      expect(new Set(identifiers)).toEqual(new Set(bodies.map(({ external_id }) => external_id)))
      expect(identifiers).toHaveLength(count)
      const [newest] = await stock.client.people
        .list({ size: 1 })
        .page()
        .then(({ items }) => items)
      expect(identifiers[0]).toBe(newest!.external_id)
    })
  })
})

describe('a long list', () => {
  it('reads ahead of the scrolling, and keeps its place while one looks at somebody', async () => {
    await open(stock, '/people', async page => {
      await countIs(page, '1,234 people')
      const list = page.getByRole('region', { name: 'People' })
      const scrollTop = () => list.evaluate(element => element.scrollTop)
      await expect
        .poll(async () => {
          await list.evaluate(element => element.scrollTo(0, element.scrollHeight))
          return nameIn(page, 'Quote "0"').count()
        })
        .toBe(1)
      await list.evaluate(element => element.scrollTo(0, 20_000))
      await expect.poll(scrollTop).toBe(20_000)
      // A click of Playwright may scroll. The row is the 508th, newest first.
      await nameIn(page, 'Quote "725"').evaluate(link => link.click())
      await page.waitForURL('**/console/people/p*')
      await page.goBack()
      await expect.poll(scrollTop).toBe(20_000)
    })
  })
})

describe('a hundred thousand people', () => {
  it('are searched while one types', async () => {
    const crowd = await service.organization()
    await create(crowd, [{ external_id: 'first' }])
    await insertManyPeople(service.sql, crowd.id, 100_000)
    await index()
    await open(crowd, '/people', async page => {
      await countIs(page, '100,001 people')
      await searchField(page).focus()
      let typed = ''
      for (const letter of 'okafor am') {
        typed += letter
        await page.keyboard.press(letter === ' ' ? 'Space' : letter)
        const { items } = await crowd.client.people.search(typed.trim(), { size: 10 }).page()
        const names = items.map(({ first_name, last_name }) => `${first_name} ${last_name}`)
        await expect.poll(async () => (await namesOn(page)).slice(0, 10)).toEqual(names)
      }
      await expect.poll(async () => new Set(await namesOn(page))).toEqual(new Set(['Amelia Okafor']))
      await searchField(page).fill('customer-77777')
      await expect.poll(() => namesOn(page)).toHaveLength(1)
      await searchField(page).fill('whitakr niam')
      await expect.poll(async () => new Set(await namesOn(page))).toEqual(new Set(['Niamh Whitaker']))
    })
  })
})

describe('the pages', () => {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [360, 1_280])
      it(`have no faults of accessibility, ${colorScheme}, ${width} pixels wide`, async () => {
        await open(
          shop,
          `/people?columns=${encodeURIComponent('email,email_consent,attribute_values.loyalty')}`,
          async page => {
            await countIs(page, '4 people')
            expect(await accessibilityFaults(page)).toEqual([])
            await page.getByRole('button', { name: 'Filter' }).click()
            await page.getByRole('combobox', { name: 'Field' }).fill('consent')
            await page.getByRole('option', { name: 'Consent', exact: true }).click()
            await page.getByText('This filter matches').waitFor()
            expect(await accessibilityFaults(page)).toEqual([])
            for (const name of ['Columns', 'Export as CSV', 'New person']) {
              await page.getByRole('button', { name }).click()
              await page.getByRole('dialog').waitFor()
              expect(await accessibilityFaults(page)).toEqual([])
              await page.keyboard.press('Escape')
              await page.getByRole('dialog').waitFor({ state: 'detached' })
            }
          },
          { context: { colorScheme, viewport: { width, height: 800 } } },
        )
      })
})
