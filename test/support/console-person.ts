import { readFile } from 'node:fs/promises'
import type { Locator, Page } from 'playwright-core'
import { button } from './console.ts'

/** Elements and actions of a person's page, which its tests share. */
export const section = (page: Page, name: string): Locator => page.getByRole('region', { name, exact: true })
export const history = (page: Page): Locator => page.getByRole('list', { name: 'History' }).getByRole('listitem')

/** Chooses an action of the menu. */
export async function choose(page: Page, action: RegExp): Promise<void> {
  await button(page, 'More').click()
  await page.getByRole('menuitem', { name: action }).click()
}

/** The content of the file that `work` makes the browser save. */
export async function downloaded(page: Page, work: () => Promise<unknown>): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent('download'), work()])
  return readFile(await download.path(), 'utf8')
}
