import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { accessibilityFaults } from '../../test/support/accessibility.ts'
import { button, useConsole } from '../../test/support/console.ts'
import { createOrders, storedValue } from '../../test/support/console-records.ts'

const { service, open, openPerson } = useConsole()
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true })
const headingFocus = (page: Page, name: string) => page.locator('h1:focus').and(heading(page, name))

it('gives the focus to the heading after a navigation, and asks once for a person who does not exist', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  const work = async (page: Page) => {
    await page.getByRole('link', { name: 'Ada' }).waitFor()
    // The first page of a document begins at its top.
    expect(await page.locator('h1:focus').count()).toBe(0)
    await page.keyboard.press('j')
    await page.locator('a:focus', { hasText: 'Ada' }).waitFor()
    await page.keyboard.press('Enter')
    await headingFocus(page, 'Ada').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('w')
    await headingFocus(page, 'Webhooks').waitFor()
    await page.getByRole('link', { name: 'Schema' }).click()
    await headingFocus(page, 'Schema').waitFor()
    const refused: string[] = []
    page.on('response', response => response.status() === 404 && refused.push(response.url()))
    await page.goto(`${service.address}/console/people/nobody`)
    await page.getByText('Nobody has this identifier').waitFor()
    expect(refused).toHaveLength(1)
  }
  await open(organization, '/people', work, { expectedErrors: /404/ })
})

it('the announcement of a pending button keeps its text after the button is gone', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  await open(organization, '/people/ada', async page => {
    await page.getByRole('button', { name: /^Marketing, Email/ }).click()
    await page.getByRole('button', { name: 'Record an answer' }).click()
    await page.getByRole('button', { name: /Answer$/ }).click()
    await page.getByRole('listbox').getByRole('option').first().click()
    const announced = page.locator('[data-live-announcer]').getByText('Recording…')
    await page.route('**/v1/people/internal/*', async route => {
      await announced.waitFor({ state: 'attached' })
      await route.continue()
    })
    await page.getByRole('button', { name: 'Record the answer' }).press('Enter')
    await page.getByRole('button', { name: 'Record an answer' }).waitFor()
    // The button is gone, and its announcement is still there.
    expect(await announced.count()).toBe(1)
    expect(await accessibilityFaults(page)).toEqual([])
  })
})

it('a person is edited and saved by the keyboard alone', async () => {
  const organization = await service.organization()
  const { people } = organization.client
  await people.create({ external_id: 'ada', first_name: 'Ada' })
  await openPerson(organization, 'ada', async page => {
    const edit = button(page, 'Edit: Profile')
    await edit.waitFor()
    const isOnEdit = () => edit.evaluate(element => element.matches(':focus'))
    for (let steps = 0; steps < 40 && !(await isOnEdit()); steps++) await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    // The first field has the focus, and Enter saves.
    await page.keyboard.press('End')
    await page.keyboard.type(' Augusta')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Ada Augusta' }).waitFor()
  })
  expect((await people.get('ada')).first_name).toBe('Ada Augusta')
})

it('a list is edited by the keyboard alone, takes lines that are pasted, and says at which value a target is missing', async () => {
  const organization = await createOrders(service)
  const { client } = organization
  await client.schema.attributes.create({ owner: 'orders', key: 'friends', type: 'person', cardinality: 'many' })
  const { record_id } = await client.stack('orders').get('o-1')
  const work = async (page: Page) => {
    await button(page, 'Edit: Values').focus()
    await page.keyboard.press('Enter')
    await page.getByLabel('friends, value 1').focus()
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
    await page.getByText(/^Value 2: names .* Value 3: names/).waitFor()
    await page.getByLabel('Create what does not exist yet as a placeholder').focus()
    await page.keyboard.press('Space')
    await page.getByLabel('friends, value 1').focus()
    await page.keyboard.press('Enter')
    // The focus returns to where the edit began.
    await expect.poll(() => button(page, 'Edit: Values').evaluate(element => element.matches(':focus'))).toBe(true)
    await page.keyboard.press('Enter')
    await page.getByLabel('friends, value 1').waitFor()
    await button(page, 'Cancel').click()
    await button(page, 'Edit: Values').waitFor()
  }
  // The first search for suggestions waits for its index.
  await open(organization, `/records/orders/${record_id}`, work, { expectedErrors: /400|503/ })
  expect(await storedValue(organization, 'o-1', 'friends')).toEqual(['grace', 'alan', 'ada', 'kurt'])
})

it('an edit begins once the declared fields are known', async () => {
  const organization = await createOrders(service)
  await openPerson(organization, 'grace', async page => {
    let send = () => {}
    const isAsked = new Promise<void>(resolve =>
      page.route('**/v1/schema', async route => {
        resolve()
        await new Promise<void>(resolveSend => {
          send = resolveSend
        })
        await route.continue()
      }),
    )
    await page.reload()
    await isAsked
    await heading(page, 'Grace').waitFor()
    expect(await button(page, 'Edit: Profile').count()).toBe(0)
    send()
    await button(page, 'Edit: Profile').waitFor()
  })
})

it('Enter and Tab choose the first match of what was typed, and the arrow keys another', async () => {
  const organization = await service.organization()
  await organization.client.schema.attributes.create({ key: 'city', owner: 'people', type: 'text' })
  await open(organization, '/people', async page => {
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

it('the back button and the links of the page ask before they leave a dialog or a form with changed input', async () => {
  await open(await service.organization(), '/people', async page => {
    const answers: ('keep' | 'lose')[] = []
    page.on('dialog', question => (answers.shift() === 'keep' ? question.dismiss() : question.accept()))
    const leaves = async (leave: () => Promise<unknown>, ...given: ('keep' | 'lose')[]) => {
      answers.push(...given)
      await leave()
      await expect.poll(() => answers).toEqual([])
    }
    const back = () => page.evaluate('history.back()')
    const schemaLink = page.getByRole('navigation').getByRole('link', { name: 'Schema' })
    await page.getByRole('navigation').getByRole('link', { name: 'Access', exact: true }).click()
    await page.getByRole('tab', { name: 'Clients' }).click()
    await page.getByRole('button', { name: 'New client' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('shop')
    await leaves(back, 'keep')
    expect(await page.getByRole('dialog').getByLabel('Name').inputValue()).toBe('shop')
    await leaves(back, 'lose')
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await schemaLink.click()
    await page.getByRole('link', { name: 'New attribute' }).click()
    const key = page.getByLabel('Key', { exact: true })
    await key.fill('city')
    await leaves(back, 'keep')
    await leaves(() => schemaLink.click(), 'keep')
    expect(await key.inputValue()).toBe('city')
    // The page asks no question about a form that was saved or cancelled.
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('link', { name: 'city' }).waitFor()
    await page.getByRole('link', { name: 'New attribute' }).click()
    await key.fill('town')
    await page.getByRole('link', { name: 'Cancel' }).click()
    await page.getByRole('link', { name: 'New attribute' }).waitFor()

    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByLabel('Heading').fill('Your choices')
    await leaves(() => schemaLink.click(), 'keep')
    expect(await page.getByLabel('Heading').inputValue()).toBe('Your choices')
    await leaves(() => page.getByRole('navigation').getByRole('link', { name: 'Import' }).click(), 'lose')
    const file = { name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from('Email,Ward\nada@example.com,7\n') }
    await page.locator('input[type=file]').setInputFiles(file)
    await button(page, 'Leave out the rest').click()
    await leaves(back, 'keep')
    await page.getByText('people.csv').waitFor()
  })
})

it('a dialog with changed input asks before Escape or a click beside it closes it, and an untouched one closes', async () => {
  const form = (page: Page) => page.getByRole('dialog')
  const answers: ('keep' | 'lose')[] = []
  const leave = {
    escape: (page: Page) => page.keyboard.press('Escape'),
    click: (page: Page) => page.mouse.click(5, 5),
  }
  await open(await service.organization(), '/people', async page => {
    page.on('dialog', question => (answers.shift() === 'keep' ? question.dismiss() : question.accept()))
    const dialogs = [
      {
        path: '/people',
        button: 'New person',
        change: () => page.getByRole('textbox', { name: 'First name' }).fill('Ada'),
      },
      {
        path: '/access?tab=clients',
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
