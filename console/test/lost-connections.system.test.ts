import { readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import type { Page, Route } from 'playwright-core'
import { expect, it } from 'vitest'
import { button, useConsole } from '../../test/support/console.ts'
import { chooseFile, countOf, storedPeople } from '../../test/support/console-import.ts'
import {
  countIs,
  createCustomers,
  createManyPeople,
  manyPeople,
  nameIn,
  refusals,
  searchField,
} from '../../test/support/console-people.ts'
import { createOrders, storedValue } from '../../test/support/console-records.ts'

const { service, open, openPerson } = useConsole()

it('the list of people keeps what was typed while the service is away, and goes on when it is back', async () => {
  const shop = await createCustomers(service)
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
      await page.getByText('The service is not available at the moment.').waitFor()
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

it('the CSV file has everybody of the filter in the order of the list, and goes on after a lost connection', async () => {
  const stock = await createManyPeople(service)
  const filter = encodeURIComponent(JSON.stringify({ language: 'en' }))
  await open(
    stock,
    `/people?filter=${filter}&columns=language&sort=external_id`,
    async page => {
      await countIs(page, '617 people')
      await page.getByRole('button', { name: 'Export as CSV' }).click()
      let requests = 0
      let isBroken = true
      await page.route('**/v1/people/filter', route => (++requests > 1 && isBroken ? route.abort() : route.continue()))
      const started = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Export', exact: true }).click()
      await page.getByText('The export waits.').waitFor()
      isBroken = false
      await page.getByRole('button', { name: 'Go on now' }).click()
      const text = await readFile(await (await started).path(), 'utf8')
      await page.getByText('617 exported.').waitFor()
      expect(text.slice(0, text.indexOf('\n'))).toBe('\ufeffIdentifier,First name,Last name,Language')
      const lines = text.trimEnd().split('\n')
      expect(lines.slice(1)).toEqual(
        manyPeople
          .filter(({ language }) => language === 'en')
          .map(({ external_id, first_name }) => `${external_id},"${first_name.replaceAll('"', '""')}",,en`)
          .sort(),
      )
    },
    refusals,
  )
})

it('the CSV file is not made if the export is cancelled, and then has everybody of all pages', async () => {
  const stock = await createManyPeople(service)
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
    expect(new Set(identifiers)).toEqual(new Set(manyPeople.map(({ external_id }) => external_id)))
    expect(identifiers).toHaveLength(manyPeople.length)
    const [newest] = await stock.client.people
      .list({ size: 1 })
      .page()
      .then(({ items }) => items)
    expect(identifiers[0]).toBe(newest!.external_id)
  })
})

it('a service that cannot answer leaves the input in the form of a person, and the next attempt stores it', async () => {
  const organization = await service.organization()
  const { people } = organization.client
  await people.create({ external_id: 'ada', first_name: 'Ada' })
  await openPerson(
    organization,
    'ada',
    async page => {
      await button(page, 'Edit: Profile').click()
      await page.getByLabel('Last name').fill('Lovelace')
      await page.route('**/v1/people/**', route =>
        route.request().method() === 'PATCH'
          ? route.fulfill({
              status: 503,
              contentType: 'application/json',
              body: '{"error":"operation_failed","errorstack":null,"message":"The service is overloaded.","details":[],"request_id":"r"}',
            })
          : route.continue(),
      )
      await button(page, 'Save').click()
      await page.getByRole('alert').getByText('The service is not available at the moment.').waitFor()
      await page.unroute('**/v1/people/**')
      await page.route('**/v1/people/**', route => route.abort())
      await button(page, 'Save').click()
      await page.getByRole('alert').getByText('The service cannot be reached.').waitFor()
      expect(await page.getByLabel('Last name').inputValue()).toBe('Lovelace')
      await page.unroute('**/v1/people/**')
      await button(page, 'Save').click()
      await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
    },
    { expectedErrors: /503|ERR_FAILED/ },
  )
  expect((await people.get('ada')).last_name).toBe('Lovelace')
})

it('a lost connection and a service that cannot answer lose no input of a record', async () => {
  const organization = await createOrders(service)
  const { record_id } = await organization.client.stack('orders').get('o-1')
  const work = async (page: Page) => {
    await button(page, 'Edit: Values').click()
    await page.getByLabel('Total').fill('77')
    const address = `**/v1/stacks/orders/internal/${record_id}`
    await page.route(address, route =>
      route.fulfill({ status: 503, json: { error: 'operation_failed', message: 'Busy.', details: [] } }),
    )
    await button(page, 'Save').click()
    await page.getByRole('alert').getByText('The service is not available at the moment.').waitFor()
    await page.unroute(address)
    await page.route(address, route => route.abort())
    await button(page, 'Save').click()
    await page.getByRole('alert').getByText('The service cannot be reached.').waitFor()
    expect(await page.getByLabel('Total').inputValue()).toBe('77')
    await page.unroute(address)
    await button(page, 'Save').click()
    await button(page, 'Edit: Values').waitFor()
  }
  const expectedErrors = /503|net::ERR_FAILED/
  await open(organization, `/records/orders/${record_id}`, work, { expectedErrors })
  expect(await storedValue(organization, 'o-1', 'total')).toBe(77)
})

it('a service that cannot answer loses no input of the settings', async () => {
  const organization = await service.organization()
  const work = async (page: Page) => {
    await page.getByLabel('Name of the organization').fill('Northwind Books')
    await page.getByLabel('Accent colour').fill('green')
    await page.route('**/v1/schema/settings', route =>
      route.fulfill({ status: 503, json: { error: 'operation_failed', message: 'Busy.', details: [] } }),
    )
    await button(page, 'Save').click()
    await page.getByRole('alert').waitFor()
    await page.unroute('**/v1/schema/settings')
    expect(await page.getByLabel('Name of the organization').inputValue()).toBe('Northwind Books')
    // A wrong value is refused at its field.
    await button(page, 'Save').click()
    await page.getByText(/^must match/).waitFor()
    await page.getByLabel('Accent colour').fill('#0b6e4f')
    await button(page, 'Save').click()
    await page.getByText(/^Saved /).waitFor()
  }
  await open(organization, '/schema?tab=settings', work, { expectedErrors: /503|400/ })
  expect(await organization.client.schema.settings()).toMatchObject({
    display_name: 'Northwind Books',
    accent_color: '#0b6e4f',
  })
})

it('creating again after a lost answer, and a double click, create once, and a refused form is sent anew', async () => {
  const shop = await service.organization()
  const named = async (first_name: string) =>
    (await shop.client.people.filter({ first_name }, { fields: ['first_name', 'email'] }).page()).items.length
  const create = (page: Page) => page.getByRole('button', { name: 'Create', exact: true })
  const work = async (page: Page) => {
    const keys: string[] = []
    // Each request arrives at the service, and its response is lost.
    const loseResponses = () =>
      page.route(/\/v1\/people$/, async route => {
        keys.push(route.request().headers()['idempotency-key'] ?? '')
        await route.fetch()
        await route.abort()
      })
    await page.getByRole('button', { name: 'New person' }).first().click()
    await page.getByRole('textbox', { name: 'First name' }).fill('Ada')
    await loseResponses()
    await create(page).click()
    await page.getByText('The service cannot be reached.').waitFor()
    await page.unroute(/\/v1\/people$/)
    const sentAgain = page.waitForRequest(/\/v1\/people$/)
    await create(page).click()
    await page.locator('h1:focus', { hasText: 'Ada' }).waitFor()
    expect(new Set([...keys, (await sentAgain).headers()['idempotency-key']]).size).toBe(1)
    expect(await named('Ada')).toBe(1)

    await page.goto(`${service.address}/console/people`)
    await page.getByRole('button', { name: 'New person' }).first().click()
    await page.getByRole('textbox', { name: 'First name' }).fill('Grace')
    await create(page).dblclick()
    await page.getByRole('heading', { level: 1, name: 'Grace' }).waitFor()
    expect(await named('Grace')).toBe(1)

    await page.goto(`${service.address}/console/access?tab=clients`)
    await page.getByRole('button', { name: 'New client' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('shop')
    await page.getByRole('checkbox').first().press('Space')
    await create(page).last().dblclick()
    await page.getByRole('alertdialog').waitFor()
    expect((await shop.client.access.clients.list().page()).items).toHaveLength(1)

    // A refusal is an answer: what stood in its way may be gone, so the same body is a new request.
    await shop.client.people.create({ external_id: 'taken' })
    await page.goto(`${service.address}/console/people`)
    await page.getByRole('button', { name: 'New person' }).first().click()
    await page.getByRole('textbox', { name: 'First name' }).fill('Mary')
    await page.getByRole('textbox', { name: 'Identifier' }).fill('taken')
    await create(page).click()
    await page.locator('[aria-invalid=true]').waitFor()
    await shop.client.people.delete('taken')
    await create(page).click()
    await page.getByRole('heading', { level: 1, name: 'Mary' }).waitFor()
  }
  await open(shop, '/people', work, { expectedErrors: /Failed to load/ })
})

it.each([
  ['record', '/records/orders', 'New record', 'Identifier', /\/v1\/stacks\/orders$/],
  ['stack', '/schema', 'New stack', 'Key', /\/v1\/schema\/stacks$/],
  ['segment', '/people?filter=%7B%22language%22%3A%22en%22%7D', 'Segment', 'Name', /\/v1\/segments$/],
] as const)('creating a %s again after a lost answer is the same request', async (_, path, button, field, address) => {
  const shop = await service.organization()
  await shop.client.schema.stacks.create({ key: 'orders', kind: 'item' })
  const work = async (page: Page) => {
    await page.getByRole('button', { name: button, exact: true }).click()
    if (button === 'Segment') await page.getByRole('menuitem', { name: 'Save the filter as a segment' }).click()
    const form = page.getByRole('dialog')
    await form.getByRole('textbox', { name: field, exact: true }).fill('first')
    await page.route(address, async route => {
      await route.fetch()
      await route.abort()
    })
    await form.getByRole('button', { name: /^(Create|Save)$/ }).click()
    await page.getByText('The service cannot be reached.').waitFor()
    await page.unroute(address)
    await form.getByRole('button', { name: /^(Create|Save)$/ }).click()
    // Under another key, the name would be taken.
    await form.waitFor({ state: 'detached' })
  }
  await open(shop, path, work, { expectedErrors: /Failed to load/ })
})

it('a lost connection pauses an import and nothing is lost or doubled', async () => {
  const organization = await service.organization()
  const lines = Array.from({ length: 5_000 }, (_, index) => JSON.stringify({ external_id: `p-${index}` }))
  await open(
    organization,
    '/import',
    async page => {
      let requests = 0
      await page.route('**/v1/people/import**', async (route: Route) => {
        requests++
        if (requests === 2) {
          // The service stores the lines, and the connection breaks before its response arrives.
          await route.fetch()
          return route.abort('connectionreset')
        }
        if (requests === 3) {
          const body = { status: 'Error', error: 'overloaded', message: 'The service is overloaded.', details: [] }
          return route.fulfill({ status: 503, json: body, headers: { 'Retry-After': '1' } })
        }
        return route.continue()
      })
      await chooseFile(page, 'people.ndjson.gz', gzipSync(lines.join('\n')))
      await page.getByRole('button', { name: 'Import', exact: true }).click()
      await page.getByText(/The import waits/).waitFor()
      await page.getByText(/cannot be reached/).waitFor()
      await page.getByRole('button', { name: 'Go on now' }).click()
      await page.getByText(/is overloaded/).waitFor()
      await page.getByRole('button', { name: 'Go on now' }).click()
      await page.getByText('Imported: people.ndjson.gz').waitFor()
      expect(await countOf(page, 'Lines read').textContent()).toBe('5,000')
      expect(requests).toBe(5)
    },
    { expectedErrors: /Failed to load resource/ },
  )
  expect(await organization.client.people.count({})).toMatchObject({ count: 5_000 })
})

it('lines without an identifier are not stored twice after a lost connection, unless somebody decides it', async () => {
  const organization = await service.organization()
  await open(
    organization,
    '/import',
    async page => {
      await page.route('**/v1/people/import**', async route => {
        await route.fetch()
        await route.abort('connectionreset')
      })
      await chooseFile(page, 'people.ndjson', '{"first_name":"Ada"}\n{"first_name":"Grace"}\n')
      await page.getByRole('button', { name: 'Import', exact: true }).click()
      await page.getByText(/could store them twice/).waitFor()
      await page.getByRole('button', { name: 'Put them with the refused lines' }).click()
      await page.getByText('Imported: people.ndjson').waitFor()
      expect(await page.getByText(/it is not known whether it is/).count()).toBe(2)
    },
    { expectedErrors: /Failed to load resource/ },
  )
  expect(await storedPeople(organization)).toHaveLength(2)
})

it('an export goes on after the last line that arrived when its connection breaks', async () => {
  const organization = await service.organization()
  const { client } = organization
  for (let index = 0; index < 5; index++) await client.people.create({ external_id: `p-${index}` })
  await open(organization, '/export', async page => {
    await page.getByRole('button', { name: /Format/ }).press('Enter')
    await page.getByRole('option', { name: 'JSON lines', exact: true }).press('Enter')
    let requests = 0
    await page.route('**/v1/people/export**', async route => {
      if (requests++ > 0) return route.continue()
      const response = await route.fetch()
      const lines = (await response.text()).split('\n').slice(0, 2)
      // The third line arrives in part.
      await route.fulfill({ response, body: `${lines.join('\n')}\n{"id":` })
    })
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export', exact: true }).click()
    await page.getByText('The export waits.').waitFor()
    await page.getByRole('button', { name: 'Go on now' }).click()
    const text = await readFile(await (await saved).path(), 'utf8')
    const ids = text
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).external_id)
    expect(ids).toEqual(['p-0', 'p-1', 'p-2', 'p-3', 'p-4'])
  })
})

it('a write that ends after its page was left does not lead back to it', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  await openPerson(organization, 'ada', async page => {
    page.on('dialog', question => question.accept())
    const held = Promise.withResolvers<void>()
    await page.route('**/v1/people/internal/*', async route => {
      if (route.request().method() === 'PATCH') await held.promise
      await route.continue()
    })
    await button(page, 'Edit: Profile').click()
    await page.getByLabel('Last name').fill('Lovelace')
    const answer = page.waitForResponse(response => response.request().method() === 'PATCH')
    await button(page, 'Save').click()
    await page.getByRole('link', { name: 'Webhooks' }).click()
    await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor()
    held.resolve()
    await (await answer).finished()
    await button(page, 'New webhook').first().click()
    await page.getByRole('dialog').getByLabel('URL').fill('https://example.com')
    await page.waitForLoadState('networkidle')
    expect(await page.getByRole('dialog').getByLabel('URL').inputValue()).toBe('https://example.com')
    // The page has what was saved when it is opened again.
    await button(page, 'Cancel').click()
    await page.getByRole('link', { name: 'People', exact: true }).click()
    await page.getByRole('link', { name: 'Ada Lovelace' }).waitFor()
  })
})

it('a browser without a network reads and writes at a service that it reaches', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  await open(organization, '/people', async page => {
    await page.getByRole('link', { name: 'Ada' }).waitFor()
    await page.evaluate('window.dispatchEvent(new Event("offline"))')
    await page.getByRole('link', { name: 'Ada' }).click()
    await button(page, 'Edit: Profile').click()
    await page.getByLabel('Last name').fill('Lovelace')
    await button(page, 'Save').click()
    await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
    await page.evaluate('window.dispatchEvent(new Event("online"))')
  })
})
