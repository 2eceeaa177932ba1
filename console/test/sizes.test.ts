import { statSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'

const { service, open } = useConsole()

/** The bytes of JavaScript, compressed with gzip, that a page has loaded. */
async function loadedBytes(page: Page): Promise<number> {
  await page.waitForLoadState('networkidle')
  const loaded = await page.evaluate<string[]>(`performance.getEntriesByType('resource').map(({ name }) => name)`)
  const scripts = loaded.filter(name => name.endsWith('.js')).map(name => new URL(name).pathname.split('/').at(-1))
  expect(scripts.length).toBeGreaterThan(5)
  const files = new Set(scripts.map(name => `${import.meta.dirname}/../dist/assets/${name}.gz`))
  return [...files].reduce((sum, file) => sum + statSync(file).size, 0)
}

it.each([
  ['/people', 200_000, (page: Page) => page.getByRole('combobox', { name: 'Segment' })],
  // The parser of CSV files comes with the first file.
  ['/import', 230_000, (page: Page) => page.getByLabel(/Drop a CSV file/)],
])('%s takes at most %i bytes of JavaScript', async (path, bytes, last) => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada' })
  await open(organization, path, async page => {
    await last(page).waitFor({ state: 'attached' })
    expect(await loadedBytes(page)).toBeLessThanOrEqual(bytes)
  })
})
