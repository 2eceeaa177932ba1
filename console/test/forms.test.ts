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
