import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { accessibilityFaults } from '../../test/support/accessibility.ts'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { history, section } from '../../test/support/console-person.ts'
import { allScopes } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'

const { service, open, openPerson } = useConsole()

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()

/** Ada with orders, one of which is older than twelve months, and a visit. */
async function createAda() {
  const shop = await createShop(
    service,
    { key: 'orders', kind: 'event', name: 'Orders', label: '{number}' },
    { owner: 'orders', key: 'buyer', type: 'person', name: 'Buyer' },
    { owner: 'orders', key: 'number', type: 'text', name: 'Number' },
    { owner: 'orders', key: 'total', type: 'number', name: 'Total' },
    { owner: 'orders', key: 'placed_at', type: 'datetime', name: 'Placed at', indexed: true },
    { key: 'visits', kind: 'event', name: 'Visits', label: '{page}' },
    { owner: 'visits', key: 'visitor', type: 'person', name: 'Visitor' },
    { owner: 'visits', key: 'page', type: 'text', name: 'Page' },
  )
  const { client } = shop
  await client.schema.stacks.patch('orders', {
    summary: { person: 'buyer', time: 'placed_at', measures: [{ op: 'count' }, { op: 'sum', key: 'total' }] },
  })
  await client.people.create({
    ...{ external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace', email: 'ada+shop@example.com' },
    ...{ mobile_prefix: '+39', mobile_number: '333 1234567' },
    consents: [{ consent_type_id: 1, channel: 'email', state: true }],
  })
  for (const [days, total] of [
    [400, 1_000],
    [30, 20.5],
    [3, 30],
  ] as const)
    await client.stack('orders').create({
      attribute_values: { buyer: 'ada', number: `Order of ${days} days ago`, total, placed_at: daysAgo(days) },
    })
  await client.stack('visits').create({ attribute_values: { visitor: 'ada', page: 'The front page' } })
  return shop
}

const glance = (page: Page) => section(page, 'At a glance')

it('an agent on the telephone sees first how to reach a person, whether she may be written to, and what she bought', async () => {
  const shop = await createAda()
  await openPerson(shop, 'ada', async page => {
    const links = glance(page).getByRole('link')
    await expect.poll(() => links.count()).toBe(2)
    expect(await links.evaluateAll(all => all.map(link => link.getAttribute('href')))).toEqual([
      'tel:+393331234567',
      'mailto:ada%2Bshop@example.com',
    ])
    await expect.poll(() => glance(page).innerText()).toMatch(/Orders\s*2 · Sum of Total: 50\.5/)
    await expect.poll(() => glance(page).innerText()).toMatch(/Email\s*Yes Marketing\s*SMS\s*No Marketing/)
    // An address that bounces is not written to, even after a grant.
    await shop.client.deliverability.record([
      { channel: 'email', address: 'ada+shop@example.com', type: 'hard_bounce', at: daysAgo(0) },
    ])
    await page.reload()
    await expect
      .poll(() => glance(page).innerText())
      .toMatch(/Email\s*No Marketing\s*Messages to this address are suppressed/)
  })
})

it('the history of a person has orders, visits, changes and notes in the order of their times', async () => {
  const shop = await createAda()
  await openPerson(shop, 'ada', async page => {
    const heads = async () => (await history(page).allInnerTexts()).map(text => text.split('\n')[0]!.trim())
    await expect
      .poll(heads)
      .toEqual(['The front page', 'tests', ...[3, 30, 400].map(days => `Order of ${days} days ago`)])
    // One key writes a note.
    await page.keyboard.press('n')
    await dialog(page).getByLabel('Text').fill('Prefers to be called\nin the afternoon')
    await page.keyboard.press('Control+Enter')
    await dialog(page).waitFor({ state: 'detached' })
    await expect.poll(() => history(page).first().innerText()).toMatch(/^Ada\s*wrote a note/)
    expect(await history(page).first().innerText()).toContain('Prefers to be called\nin the afternoon')
    // The second one goes into the stack that the first one made.
    await button(page, 'Note').click()
    await dialog(page).getByLabel('Text').fill('Called back')
    await button(page, 'Save').click()
    await expect.poll(() => history(page).first().innerText()).toContain('Called back')
    expect(await accessibilityFaults(page)).toEqual([])
  })
  const { items } = await shop.client.stack('notes').list().page()
  expect(items.map(({ attribute_values }) => attribute_values)).toMatchObject([
    { person: 'ada', text: 'Called back', author: 'Ada' },
    { person: 'ada', text: 'Prefers to be called\nin the afternoon', author: 'Ada' },
  ])
})

it('a long history of several kinds is read in pages, without a gap and without a repetition', async () => {
  const shop = await createAda()
  await shop.client.stack('orders').batch(
    Array.from({ length: 60 }, (_, index) => ({
      op: 'create' as const,
      body: { attribute_values: { buyer: 'ada', number: `n-${index}`, placed_at: daysAgo(500 + index) } },
    })),
  )
  await openPerson(shop, 'ada', async page => {
    await expect.poll(() => history(page).count()).toBe(25)
    for (const count of [50, 65]) {
      await button(page, 'Show older entries').press('Enter')
      await expect.poll(() => history(page).count()).toBe(count)
    }
    const links = await page.getByRole('list', { name: 'History' }).getByRole('link', { name: /^n-/ }).allInnerTexts()
    expect(links).toEqual(Array.from({ length: 60 }, (_, index) => `n-${index}`))
    expect(await button(page, 'Show older entries').count()).toBe(0)
  })
})

it('somebody with a role sees no section that would be empty, and no button that does nothing', async () => {
  const shop = await createAda()
  await shop.client.access.roles.create({
    key: 'names',
    scopes: allScopes.split(' ').filter(scope => !['changes:read', 'access:read'].includes(scope)) as 'people:read'[],
    fields: { people: { read: ['first_name', 'last_name'], write: [] } },
  })
  await openPerson(
    shop,
    'ada',
    async page => {
      await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
      await page.waitForLoadState('networkidle')
      expect(await page.getByRole('region').evaluateAll(all => all.map(one => one.getAttribute('aria-label')))).toEqual(
        ['Profile'],
      )
      expect(await button(page, 'Note').count()).toBe(0)
    },
    { role: 'names', expectedErrors: /403/ },
  )
})

it('linked records are cards where the window is narrow', async () => {
  const shop = await createAda()
  await open(
    shop,
    '/people/ada',
    async page => {
      const card = page.locator('tr').filter({ hasText: 'Order of 3 days ago' })
      await card.waitFor()
      const [name, total] = await Promise.all(
        [card.locator('th'), card.locator('td').last()].map(cell => cell.evaluate(one => one.getBoundingClientRect())),
      )
      expect(total!.top).toBeGreaterThanOrEqual(name!.bottom)
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
      expect(await accessibilityFaults(page)).toEqual([])
    },
    { viewport: { width: 390, height: 800 } },
  )
})
