import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { accessibilityFaults } from '../../test/support/accessibility.ts'
import { useBrowser } from '../../test/support/browser.ts'
import { openConsole } from '../../test/support/console.ts'
import { useService } from '../../test/support/service.ts'

const service = useService()
const browser = useBrowser()

/** Starts the export, and returns the file that the browser saves. */
async function exportedFile(page: Page): Promise<string> {
  const saved = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Export', exact: true }).click()
  return readFile(await (await saved).path(), 'utf8')
}

async function choose(page: Page, label: string, option: string) {
  await page.getByRole('button', { name: new RegExp(label) }).press('Enter')
  await page.getByRole('option', { name: option, exact: true }).press('Enter')
}

it('a marketer saves the people of a segment for a spreadsheet, and no value of it runs as a formula', async () => {
  const organization = await service.organization()
  const { client } = organization
  for (const [external_id, first_name, language] of [
    ['ada', "=cmd|' /C calc'!A0", 'en'],
    ['grace', 'Grace', 'en'],
    ['rosa', 'Rosa', 'es'],
  ] as const)
    await client.people.create({ external_id, first_name, language })
  await client.segments.create({ key: 'english', name: 'English', filter: { language: 'en' } })
  await openConsole({ service, browser, organization }, '/export', async page => {
    await choose(page, 'Only people of the segment', 'English')
    const [header, ...lines] = (await exportedFile(page)).trim().split('\n')
    expect(header).toMatch(/^external_id,first_name/)
    expect(lines).toEqual([expect.stringMatching(/^ada,'=cmd/), expect.stringMatching(/^grace,Grace/)])
    await page.getByText('2 exported.').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
  })
})

it('an export goes on after the last line that arrived when its connection breaks', async () => {
  const organization = await service.organization()
  const { client } = organization
  for (let index = 0; index < 5; index++) await client.people.create({ external_id: `p-${index}` })
  await openConsole({ service, browser, organization }, '/export', async page => {
    await choose(page, 'Format', 'JSON lines')
    let requests = 0
    await page.route('**/v1/people/export**', async route => {
      if (requests++ > 0) return route.continue()
      const response = await route.fetch()
      const lines = (await response.text()).split('\n').slice(0, 2)
      // The third line arrives in part.
      await route.fulfill({ response, body: `${lines.join('\n')}\n{"id":` })
    })
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export', exact: true }).click()
    await page.getByText('The export waits.').waitFor()
    await page.getByRole('button', { name: 'Go on now' }).click()
    const text = await readFile(await (await saved).path(), 'utf8')
    const ids = text
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).external_id)
    expect(ids).toEqual(['p-0', 'p-1', 'p-2', 'p-3', 'p-4'])
  })
})
