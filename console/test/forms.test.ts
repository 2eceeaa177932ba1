import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useBrowser } from '../../test/support/browser.ts'
import { openConsole } from '../../test/support/console.ts'
import { useService } from '../../test/support/service.ts'
import { createShop, useSharedShop } from '../../test/support/shop.ts'

const service = useService()
const browser = useBrowser()
const organization = useSharedShop(service, 'city')
const open = (path: string, work: (page: Page) => Promise<void>, options: Parameters<typeof openConsole>[3] = {}) =>
  openConsole({ service, browser, organization }, path, work, options)

it('Enter and Tab choose the first match of what was typed, and the arrow keys another', async () => {
  await open('/people', async page => {
    await page.getByRole('button', { name: 'Filter' }).click()
    const field = page.getByRole('combobox', { name: 'Field' })
    const value = page.getByRole('textbox', { name: 'Value' })
    await field.fill('cit')
    await field.press('Enter')
    expect(await field.inputValue()).toBe('city')
    await value.waitFor()
    // The focus stays in the field.
    await page.keyboard.press('Control+A')
    await page.keyboard.type('last n')
    await page.keyboard.press('Tab')
    expect(await field.inputValue()).toBe('Last name')
    await field.fill('name')
    await field.press('ArrowDown')
    await field.press('ArrowDown')
    await field.press('Enter')
    expect(await field.inputValue()).toBe('Last name')
    // Without a match, the field keeps its value.
    await field.fill('no such field')
    await field.press('Enter')
    await field.press('Tab')
    await expect.poll(() => field.inputValue()).toBe('Last name')
    await page.getByRole('button', { name: 'Apply' }).waitFor()
  })
})

it('a dialog with changed input asks before Escape or a click beside it closes it, and an untouched one closes', async () => {
  const form = (page: Page) => page.getByRole('dialog')
  const answers: ('keep' | 'lose')[] = []
  const leave = {
    escape: (page: Page) => page.keyboard.press('Escape'),
    click: (page: Page) => page.mouse.click(5, 5),
  }
  await open('/people', async page => {
    page.on('dialog', question => (answers.shift() === 'keep' ? question.dismiss() : question.accept()))
    const dialogs = [
      {
        path: '/people',
        button: 'New person',
        change: () => page.getByRole('textbox', { name: 'First name' }).fill('Ada'),
      },
      {
        path: '/access',
        button: 'New client',
        change: () => page.getByRole('checkbox').first().press('Space'),
      },
      {
        path: '/schema',
        button: 'New stack',
        change: async () => {
          await page.getByRole('button', { name: /Kind/ }).click()
          await page.getByRole('option', { name: /Event/ }).click()
          await page.getByRole('listbox').waitFor({ state: 'detached' })
        },
      },
    ]
    for (const { path, button, change } of dialogs) {
      await page.goto(`${service.address}/console${path}`)
      for (const way of ['escape', 'click'] as const) {
        await page.getByRole('button', { name: button }).click()
        await form(page).waitFor()
        await leave[way](page)
        await form(page).waitFor({ state: 'detached' })
        await page.getByRole('button', { name: button }).click()
        await change()
        answers.push('keep', 'lose')
        await leave[way](page)
        await expect.poll(() => answers).toEqual(['lose'])
        expect(await form(page).count()).toBe(1)
        await leave[way](page)
        await form(page).waitFor({ state: 'detached' })
        expect(answers).toEqual([])
      }
    }
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

    await page.goto(`${service.address}/console/access`)
    await page.getByRole('button', { name: 'New client' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('shop')
    await page.getByRole('checkbox').first().press('Space')
    await create(page).last().dblclick()
    await page.getByRole('alertdialog').waitFor()
    expect((await shop.client.access.clients.list()).items).toHaveLength(1)

    // A refusal is an answer: what stood in its way may be gone, so the same body is a new request.
    await shop.client.people.create({ external_id: 'taken' })
    await page.goto(`${service.address}/console/people`)
    await page.getByRole('button', { name: 'New person' }).first().click()
    await page.getByRole('textbox', { name: 'First name' }).fill('Mary')
    await page.getByRole('textbox', { name: 'External id' }).fill('taken')
    await create(page).click()
    await page.locator('[aria-invalid=true]').waitFor()
    await shop.client.people.delete('taken')
    await create(page).click()
    await page.getByRole('heading', { level: 1, name: 'Mary' }).waitFor()
  }
  await openConsole({ service, browser, organization: shop }, '/people', work, { expectedErrors: /Failed to load/ })
})

it.each([
  ['record', '/records/orders', 'New record', 'Identifier', /\/v1\/stacks\/orders$/],
  ['stack', '/schema', 'New stack', 'Key', /\/v1\/schema\/stacks$/],
  ['segment', '/people?filter=%7B%22language%22%3A%22en%22%7D', 'Segment', 'Name', /\/v1\/segments$/],
] as const)('creating a %s again after a lost answer is the same request', async (_, path, button, field, address) => {
  const shop = await createShop(service, 'orders')
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
  await openConsole({ service, browser, organization: shop }, path, work, { expectedErrors: /Failed to load/ })
})
