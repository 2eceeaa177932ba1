import { expect, it } from 'vitest'
import { backfillIndexes } from '../../src/entities/indexes/index-backfill.ts'
import { button, useConsole } from '../../test/support/console.ts'
import {
  countIs,
  createCustomers,
  createManyPeople,
  createPeople,
  indexWords,
  nameIn,
  namesOn,
  searchField,
} from '../../test/support/console-people.ts'
import { history } from '../../test/support/console-person.ts'
import { createOrders, firstCells } from '../../test/support/console-records.ts'
import { insertManyPeople } from '../../test/support/many-people.ts'

const { service, open, openPerson } = useConsole()

it('a list of people says that an attribute without an index sorts nothing, and indexes it', async () => {
  const shop = await createCustomers(service)
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

it('a search keeps the filter, and the filter keeps the search; numeric text in the address is searched for', async () => {
  const organization = await createOrders(service)
  const attribute = { owner: 'orders', key: 'note', type: 'text', searchable: true } as const
  await organization.client.schema.attributes.create(attribute)
  await organization.client.stack('orders').batch(
    ['paid', 'open', 'open'].map((state, index) => ({
      op: 'create' as const,
      body: { external_id: `n-${index}`, attribute_values: { state, note: `ring 7${'0'.repeat(20 * index)} times` } },
    })),
  )
  await indexWords(service)
  const filter = encodeURIComponent('{"attribute_values.state":"open"}')
  await open(organization, `/records/orders?text=ring&filter=${filter}`, async page => {
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
    await button(page, /^Filter/).click()
    await button(page, 'Clear the filter').click()
    await expect.poll(() => firstCells(page)).toEqual(['o-2', 'n-0', 'n-1', 'n-2'])
    expect(await page.getByRole('searchbox').inputValue()).toBe('ring')
  })
})

it('a list that is longer than its pages scrolls to its end', async () => {
  const organization = await createOrders(service)
  const operations = Array.from({ length: 350 }, (_, index) => ({
    op: 'create' as const,
    body: { external_id: `many-${index}`, attribute_values: { total: index } },
  }))
  await organization.client.stack('orders').batch(operations)
  await open(organization, '/records/orders', async page => {
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
    const last = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'o-1', exact: true }) })
    expect(await last.getAttribute('aria-rowindex')).toBe('354')
  })
})

it('a long history is read in pages, back to the creation', async () => {
  const organization = await service.organization()
  const { people } = organization.client
  await people.create({ external_id: 'ada' })
  for (let number = 1; number <= 30; number++) await people.patch('ada', { first_name: `Ada ${number}` })
  await openPerson(organization, 'ada', async page => {
    await button(page, 'Show older entries').click()
    await expect.poll(() => history(page).count()).toBe(31)
    expect(await history(page).last().innerText()).toContain('created')
  })
})

it('a long list reads ahead of the scrolling, and keeps its place while one looks at somebody', async () => {
  const stock = await createManyPeople(service)
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

it('a hundred thousand people are searched while one types', async () => {
  const crowd = await service.organization()
  await createPeople(crowd, [{ external_id: 'first' }])
  await insertManyPeople(service.sql, crowd.id, 100_000)
  await indexWords(service)
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
  // A hundred thousand people and their words take half a minute, and twice as long on a busy machine.
}, 180_000)

it('the list of a segment that somebody deleted leads back to all people', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  await open(
    organization,
    '/people?segment=gone',
    async page => {
      await page.getByText('The filter is invalid.').waitFor()
      const choice = page.getByRole('combobox', { name: 'Segment' })
      expect(await choice.inputValue()).toBe('gone')
      await choice.selectOption('All people')
      await page.getByRole('link', { name: 'Ada' }).waitFor()
    },
    { expectedErrors: /400/ },
  )
})
