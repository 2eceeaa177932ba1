import { gzipSync } from 'node:zlib'
import type { Page, Route } from 'playwright-core'
import { beforeEach, expect, it } from 'vitest'
import { accessibilityFaults } from '../../test/support/accessibility.ts'
import { useBrowser } from '../../test/support/browser.ts'
import { openConsole } from '../../test/support/console.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const browser = useBrowser()
let place: Parameters<typeof openConsole>[0]

const organization = useShop(service)
beforeEach(async () => {
  place = { service, browser, organization }
})

const chooseFile = (page: Page, name: string, content: string | Buffer) =>
  page.getByLabel(/Drop a CSV file/).setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(content) })

/** Maps a column to a field by the keyboard alone. */
async function mapColumn(page: Page, column: string, field: string) {
  const button = page.getByRole('button', { name: new RegExp(`Becomes: ${column}`) })
  await button.focus()
  await page.keyboard.press('Enter')
  const option = page.getByRole('option', { name: field, exact: true })
  await option.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('listbox').waitFor({ state: 'detached' })
}

const count = (page: Page, name: string) =>
  page.locator('dl > div', { has: page.getByText(name, { exact: true }) }).locator('dd')

async function people(): Promise<Record<string, unknown>[]> {
  const found = []
  for await (const person of organization.client.people.list({ size: 500, sorting_type: 'asc' })) found.push(person)
  return found
}

it('an engineer imports a file with refused lines, mends them in the page, and all arrive', async () => {
  const file = [
    'Customer number;E-Mail;First name;Date of birth;City',
    '1;ada@example.com;Ada;10.12.1915;London',
    '2;grace at example.com;Grace;09.12.1906;New York',
    '3;linus@example.com;"Linus ""T"" ";31.02.1969;Helsinki',
  ].join('\r\n')
  await openConsole(
    place,
    '/import',
    async page => {
      await chooseFile(page, 'customers.csv', file)
      await mapColumn(page, 'Customer number', 'external_id')
      await page.getByRole('button', { name: 'Import the rest as attributes' }).click()
      const preview = page.getByRole('group', { name: 'Preview: the first 3 lines' })
      expect(await preview.getByText(/is not a date/).count()).toBe(1)
      await page.getByRole('button', { name: 'Check without storing' }).click()
      await page.getByText('Checked. Nothing was stored.').waitFor()
      expect(await count(page, 'Refused').textContent()).toBe('2')
      expect(await people()).toEqual([])

      await page.getByRole('button', { name: 'Back to the columns' }).click()
      await page.getByRole('button', { name: 'Import', exact: true }).click()
      await page.getByText('Imported: customers.csv').waitFor()
      for (const [line, label, value] of [
        ['3', 'E-Mail', 'grace@example.com'],
        ['4', 'Date of birth', '28.12.1969'],
      ] as const) {
        await page.getByRole('button', { name: `Mend line ${line}` }).click()
        await page.getByLabel(label).fill(value)
        await page.getByRole('button', { name: 'Keep the change' }).click()
      }
      expect(await accessibilityFaults(page)).toEqual([])
      // A request that the service does not get loses nothing that was mended.
      await page.route('**/v1/people/import**', route => route.abort('connectionrefused'))
      await page.getByRole('button', { name: 'Send 2 again' }).click()
      await page.getByText('The import waits.').waitFor()
      await page.getByRole('button', { name: 'Cancel' }).click()
      await page.getByText('Mended').nth(1).waitFor()
      await page.unroute('**/v1/people/import**')
      await page.getByRole('button', { name: 'Send 2 again' }).click()
      await count(page, 'Created').filter({ hasText: '3' }).waitFor()
    },
    { expectedErrors: /Failed to load resource/ },
  )
  expect(await people()).toMatchObject([
    { external_id: '1', first_name: 'Ada', date_of_birth: '1915-12-10', attribute_values: { City: 'London' } },
    { external_id: '2', email: 'grace@example.com', date_of_birth: '1906-12-09' },
    { external_id: '3', first_name: 'Linus "T"', date_of_birth: '1969-12-28' },
  ])
})

it('shows the field of each column that it maps by itself, and counts the lines that overwrite an earlier one', async () => {
  await organization.client.schema.attributes.create({ key: 'city', owner: 'people', type: 'text' })
  const file = 'external_id,city,attribute_values.shoe,attribute_values.city\na,Rome,41,\nb,Paris,,\na,Oslo,42,\n'
  await openConsole(place, '/import', async page => {
    await chooseFile(page, 'people.csv', file)
    const becomes = page.getByRole('button', { name: /Becomes/ })
    await expect
      .poll(() => becomes.allTextContents())
      .toEqual([
        expect.stringContaining('external_id'),
        expect.stringContaining('attribute_values.city'),
        expect.stringContaining('shoe'),
        // Two columns cannot become one field.
        expect.stringContaining('Choose a field'),
      ])
    await page.getByRole('button', { name: 'Leave out the rest' }).click()
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('Imported: people.csv').waitFor()
    expect(await count(page, 'Overwrite an earlier line').textContent()).toBe('1')
    expect(await count(page, 'Created').textContent()).toBe('2')
  })
  expect(await people()).toMatchObject([
    { external_id: 'a', attribute_values: { city: 'Oslo', shoe: '42' } },
    { external_id: 'b', attribute_values: { city: 'Paris' } },
  ])
})

it('a lost connection pauses an import and nothing is lost or doubled', async () => {
  const lines = Array.from({ length: 5_000 }, (_, index) => JSON.stringify({ external_id: `p-${index}` }))
  await openConsole(
    place,
    '/import',
    async page => {
      let requests = 0
      await page.route('**/v1/people/import**', async (route: Route) => {
        requests++
        if (requests === 2) {
          // The service stores the lines, and the connection breaks before its response arrives.
          await route.fetch()
          return route.abort('connectionreset')
        }
        if (requests === 3) {
          const body = { status: 'Error', error: 'overloaded', message: 'The service is overloaded.', details: [] }
          return route.fulfill({ status: 503, json: body, headers: { 'Retry-After': '1' } })
        }
        return route.continue()
      })
      await chooseFile(page, 'people.ndjson.gz', gzipSync(lines.join('\n')))
      await page.getByRole('button', { name: 'Import', exact: true }).click()
      await page.getByText(/The import waits/).waitFor()
      await page.getByText(/cannot be reached/).waitFor()
      await page.getByRole('button', { name: 'Go on now' }).click()
      await page.getByText(/is overloaded/).waitFor()
      await page.getByRole('button', { name: 'Go on now' }).click()
      await page.getByText('Imported: people.ndjson.gz').waitFor()
      expect(await count(page, 'Lines read').textContent()).toBe('5,000')
      expect(requests).toBe(5)
    },
    { expectedErrors: /Failed to load resource/ },
  )
  expect(await organization.client.people.count({})).toMatchObject({ count: 5_000 })
})

it('lines without an identifier are not stored twice after a lost connection, unless somebody decides it', async () => {
  await openConsole(
    place,
    '/import',
    async page => {
      await page.route('**/v1/people/import**', async route => {
        await route.fetch()
        await route.abort('connectionreset')
      })
      await chooseFile(page, 'people.ndjson', '{"first_name":"Ada"}\n{"first_name":"Grace"}\n')
      await page.getByRole('button', { name: 'Import', exact: true }).click()
      await page.getByText(/could store them twice/).waitFor()
      await page.getByRole('button', { name: 'Put them with the refused lines' }).click()
      await page.getByText('Imported: people.ndjson').waitFor()
      expect(await page.getByText(/it is not known whether it is/).count()).toBe(2)
    },
    { expectedErrors: /Failed to load resource/ },
  )
  expect(await people()).toHaveLength(2)
})

it('hostile values of a file are text: formulas, markup, right-to-left marks, and a cell of 64 KiB', async () => {
  const hostile = ["=cmd|' /C calc'!A0", '<img src=x onerror="document.title=1">', '\u202egnp.exe', 'x'.repeat(65_536)]
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
  const rows = hostile.map((text, index) => `h-${index},${quoted(text)}\r\n`)
  const file = `\ufeffexternal_id,${quoted('<img src=x onerror="document.title=2">')}\r\n${rows.join('')}`
  await openConsole(
    place,
    '/import',
    async page => {
      await chooseFile(page, '<b>hostile<\u202e.csv', file)
      await page.getByRole('button', { name: 'Import the rest as attributes' }).click()
      await page.getByRole('button', { name: 'Import', exact: true }).waitFor()
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
      expect(await page.locator('img[src=x], b').count()).toBe(0)
      await page.getByRole('button', { name: 'Import', exact: true }).click()
      await page.getByText(/^Imported/).waitFor()
      expect(await page.title()).toBe('Import · kith')
    },
    { context: { viewport: { width: 360, height: 800 } } },
  )
  const stored = await people()
  expect(stored.map(person => Object.values(person.attribute_values as object)[0])).toEqual(hostile)
})

it('has no accessibility faults, in light and dark, on a narrow and a wide window', async () => {
  for (const [colorScheme, width] of [
    ['light', 1280],
    ['dark', 360],
  ] as const)
    await openConsole(
      place,
      '/import',
      async page => {
        await page.getByLabel(/Drop a CSV file/).waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
        await chooseFile(page, 'people.csv', 'external_id,mail\na,b\n')
        await page.getByRole('button', { name: 'Import the rest as attributes' }).waitFor()
        expect(await accessibilityFaults(page)).toEqual([])
      },
      { context: { viewport: { width, height: 800 }, colorScheme } },
    )
})

it('somebody who may only read people is not shown the import', async () => {
  await openConsole(
    place,
    '/people',
    async page => {
      await page.getByRole('link', { name: 'Export' }).waitFor()
      expect(await page.getByRole('navigation').getByRole('link', { name: 'Import' }).count()).toBe(0)
    },
    { scope: 'people:read' },
  )
})
