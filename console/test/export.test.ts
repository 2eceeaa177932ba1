import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'

const { service, open } = useConsole()

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
  await client.segments.create({ key: 'english', name: 'English speakers', filter: { language: 'en' } })
  await open(organization, '/export', async page => {
    await choose(page, 'Only people of the segment', 'English speakers')
    const [header, ...lines] = (await exportedFile(page)).trim().split('\n')
    expect(header).toMatch(/^\ufeff?Identifier,First name/)
    expect(lines).toEqual([expect.stringMatching(/^ada,'=cmd/), expect.stringMatching(/^grace,Grace/)])
    await page.getByText('2 exported.').waitFor()
  })
})

it('the file for a German spreadsheet has semicolons, decimal commas and the names of the columns', async () => {
  const organization = await service.organization()
  const { client } = organization
  await client.schema.stacks.create({ key: 'orders', name: 'Bestellungen', kind: 'item' })
  await client.schema.attributes.create({ key: 'total', name: 'Summe', owner: 'orders', type: 'number' })
  await client.stack('orders').create({ external_id: 'o-1', attribute_values: { total: 1234.5 } })
  await open(
    organization,
    '/records/orders',
    async page => {
      await page.getByRole('button', { name: 'Als CSV exportieren' }).click()
      const saved = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Exportieren', exact: true }).click()
      const [header, line] = (await readFile(await (await saved).path(), 'utf8')).split('\n')
      expect(header).toMatch(/^\ufeffKennung;Summe;/)
      expect(line).toMatch(/^o-1;1234,5;/)
    },
    { locale: 'de-DE' },
  )
})
