import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { useBrowser } from '../../test/support/browser.ts'
import { openConsole } from '../../test/support/console.ts'
import { type Organization, useService } from '../../test/support/service.ts'

const service = useService()
const browser = useBrowser()
let organization: Organization
beforeAll(async () => {
  organization = await service.organization()
  await organization.client.schema.attributes.create({ key: 'city', owner: 'people', type: 'text' })
})
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
