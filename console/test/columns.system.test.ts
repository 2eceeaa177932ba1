import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'
import { createCustomers } from '../../test/support/console-people.ts'

const { service, open } = useConsole()

const header = (page: Page, name: string) => page.getByRole('columnheader', { name })
// The first column chooses rows.
const headers = async (page: Page) => (await page.getByRole('columnheader').allTextContents()).slice(1, 5)
const widthOf = async (page: Page, name: string) => Math.round((await header(page, name).boundingBox())!.width)

it('this browser keeps the order and the widths of the columns, by mouse and by keyboard', async () => {
  await open(await createCustomers(service), '/people?columns=email,external_id,created_at', async page => {
    await header(page, 'Email').waitFor()
    const [x, y, before] = await header(page, 'Email')
      .boundingBox()
      .then(box => [box!.x + box!.width - 3, box!.y + 10, Math.round(box!.width)] as const)
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x + 80, y, { steps: 4 })
    await page.mouse.up()
    await expect.poll(() => widthOf(page, 'Email')).toBe(before + 80)
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('button', { name: 'Move Identifier up' }).press('Enter')
    await page.getByRole('button', { name: 'Make Created wider' }).press('Enter')
    await page.getByRole('button', { name: 'Close' }).click()
    await expect.poll(() => headers(page)).toEqual(['Name', 'Identifier', 'Email', 'Created'])
    await page.goto(page.url().replace(/\?.*/, ''))
    await expect.poll(() => headers(page)).toEqual(['Name', 'Identifier', 'Email', 'Created'])
    expect([await widthOf(page, 'Email'), await widthOf(page, 'Created')]).toEqual([before + 80, 240])
  })
})

it.each(['en-US', 'de-DE', 'it-IT'])('a time is not cut in a window of 1440 pixels, in %s', async locale => {
  await open(
    await createCustomers(service),
    '/people?columns=email,external_id,mobile_number,language,created_at,updated_at',
    async page => {
      const cells = page.getByRole('row').nth(1).getByRole('cell')
      await cells.last().waitFor()
      for (const cell of (await cells.all()).slice(-2))
        expect(await cell.evaluate(element => element.scrollWidth <= element.clientWidth)).toBe(true)
    },
    { locale, viewport: { width: 1440, height: 900 } },
  )
})
