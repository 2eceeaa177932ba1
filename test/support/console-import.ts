import type { Locator, Page } from 'playwright-core'
import type { Organization } from './service.ts'

/** Elements and actions of the page of imports, which its tests share. */
export const chooseFile = (page: Page, name: string, content: string | Buffer): Promise<void> =>
  page.getByLabel(/Drop a CSV file/).setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(content) })
export const countOf = (page: Page, name: string): Locator =>
  page.locator('dl > div', { has: page.getByText(name, { exact: true }) }).locator('dd')

/** The people of an organization, the first one first. */
export async function storedPeople({ client }: Organization): Promise<Record<string, unknown>[]> {
  const found = []
  for await (const person of client.people.list({ size: 500, order: 'asc' })) found.push(person)
  return found
}
