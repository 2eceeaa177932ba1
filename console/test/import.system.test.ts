import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'
import { chooseFile, countOf, storedPeople } from '../../test/support/console-import.ts'
import { useShop } from '../../test/support/shop.ts'

const { service, open } = useConsole()
const organization = useShop(service)

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

it('an engineer imports a file with refused lines, mends them in the page, and all arrive', async () => {
  const file = [
    'Customer number;E-Mail;First name;Date of birth;City',
    '1;ada@example.com;Ada;10.12.1915;London',
    '2;grace at example.com;Grace;09.12.1906;New York',
    '3;linus@example.com;"Linus ""T"" ";31.02.1969;Helsinki',
  ].join('\r\n')
  await open(
    organization,
    '/import',
    async page => {
      await chooseFile(page, 'customers.csv', file)
      await mapColumn(page, 'Customer number', 'Identifier')
      await page.getByRole('button', { name: 'Import the rest as attributes' }).click()
      const preview = page.getByRole('group', { name: 'Preview: the first 3 lines' })
      expect(await preview.getByText(/is not a date/).count()).toBe(1)
      await page.getByRole('button', { name: 'Check without storing' }).click()
      await page.getByText('Checked. Nothing was stored.').waitFor()
      expect(await countOf(page, 'Refused').textContent()).toBe('2')
      expect(await storedPeople(organization)).toEqual([])

      await page.getByRole('button', { name: 'Back to the columns' }).click()
      await page.getByRole('button', { name: 'Import', exact: true }).click()
      await page.getByText('Imported: customers.csv').waitFor()
      // The faults of the service and those of the file are said in the language of the page.
      await page.getByRole('combobox', { name: /Language/ }).selectOption('Deutsch')
      for (const [line, fault] of [
        ['3', 'muss eine E-Mail-Adresse sein'],
        ['4', /ist kein Datum wie/],
      ] as const) {
        await page.getByRole('button', { name: `Zeile ${line} ausbessern` }).click()
        await page.getByRole('dialog').getByText(fault).waitFor()
        await page.keyboard.press('Escape')
        await page.getByRole('dialog').waitFor({ state: 'detached' })
      }
      await page.getByRole('combobox', { name: /Sprache/ }).selectOption('English')
      for (const [line, label, value] of [
        ['3', 'E-Mail', 'grace@example.com'],
        ['4', 'Date of birth', '28.12.1969'],
      ] as const) {
        await page.getByRole('button', { name: `Mend line ${line}` }).click()
        await page.getByLabel(label).fill(value)
        await page.getByRole('button', { name: 'Keep the change' }).click()
      }
      // A request that the service does not get loses nothing that was mended.
      await page.route('**/v1/people/import**', route => route.abort('connectionrefused'))
      await page.getByRole('button', { name: 'Send 2 again' }).click()
      await page.getByText('The import waits.').waitFor()
      await page.getByRole('button', { name: 'Cancel' }).click()
      await page.getByText('Mended').nth(1).waitFor()
      await page.unroute('**/v1/people/import**')
      await page.getByRole('button', { name: 'Send 2 again' }).click()
      await countOf(page, 'Created').filter({ hasText: '3' }).waitFor()
    },
    { expectedErrors: /Failed to load resource/ },
  )
  expect(await storedPeople(organization)).toMatchObject([
    { external_id: '1', first_name: 'Ada', date_of_birth: '1915-12-10', attribute_values: { City: 'London' } },
    { external_id: '2', email: 'grace@example.com', date_of_birth: '1906-12-09' },
    { external_id: '3', first_name: 'Linus "T"', date_of_birth: '1969-12-28' },
  ])
})

it('shows the field of each column that it maps by itself, and counts the lines that overwrite an earlier one', async () => {
  await organization.client.schema.attributes.create({ key: 'city', owner: 'people', type: 'text' })
  const file = 'external_id,city,attribute_values.shoe,attribute_values.city\na,Rome,41,\nb,Paris,,\na,Oslo,42,\n'
  await open(organization, '/import', async page => {
    await chooseFile(page, 'people.csv', file)
    const becomes = page.getByRole('button', { name: /Becomes/ })
    await expect
      .poll(() => becomes.allTextContents())
      .toEqual([
        expect.stringContaining('Identifier'),
        expect.stringContaining('city'),
        expect.stringContaining('shoe'),
        // Two columns cannot become one field.
        expect.stringContaining('Choose a field'),
      ])
    await page.getByRole('button', { name: 'Leave out the rest' }).click()
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('Imported: people.csv').waitFor()
    expect(await countOf(page, 'Overwrite an earlier line').textContent()).toBe('1')
    expect(await countOf(page, 'Created').textContent()).toBe('2')
  })
  expect(await storedPeople(organization)).toMatchObject([
    { external_id: 'a', attribute_values: { city: 'Oslo', shoe: '42' } },
    { external_id: 'b', attribute_values: { city: 'Paris' } },
  ])
})

it('finds the encoding and the decimal mark of a file, reads words as the page says, and mends malformed quotes', async () => {
  const { attributes } = organization.client.schema
  await attributes.create({ key: 'age', owner: 'people', type: 'number' })
  await attributes.create({ key: 'member', owner: 'people', type: 'boolean' })
  const file = 'sep=;\r\nexternal_id;first_name;age;member\r\n1;Zo\xeb;1,5;ja\r\n2;-\r\n3;"Ann" ;2;nein;\r\n'
  await open(organization, '/import', async page => {
    await chooseFile(page, 'people.csv', Buffer.from(file, 'latin1'))
    await page.getByText('Detected: windows-1252').first().waitFor()
    await page.getByLabel('Words for yes').fill('ja')
    await page.getByLabel('Words for an empty cell').fill('ja')
    await page.getByText('The word "ja" cannot mean both true and null.').waitFor()
    await page.getByLabel('Words for an empty cell').fill('-')
    await page.getByLabel('Words for no').fill('nein')
    await page
      .getByRole('button', { name: /Numbers such as/ })
      .filter({ hasText: 'Detected: 0,5' })
      .waitFor()
    await page.getByText(/between a closing quote/).waitFor()
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('Imported: people.csv').waitFor()
    await page.getByRole('button', { name: 'Mend line 5' }).click()
    await page.getByLabel('The record, as the file has it').fill('3;"Ann";2;nein')
    await page.getByRole('button', { name: 'Keep the change' }).click()
    await page.getByRole('button', { name: 'Send 1 again' }).click()
    await countOf(page, 'Created').filter({ hasText: '3' }).waitFor()
  })
  expect(await storedPeople(organization)).toMatchObject([
    { external_id: '1', first_name: 'Zoë', attribute_values: { age: 1.5, member: true } },
    { external_id: '2', first_name: null, attribute_values: {} },
    { external_id: '3', first_name: 'Ann', attribute_values: { age: 2, member: false } },
  ])
})

it('recognizes nobody by an email that more than ten lines share, and says how many lines that were', async () => {
  const lines = Array.from({ length: 11 }, (_, i) => `N${i},info@example.com`)
  await open(organization, '/import', async page => {
    const file = ['first_name,email', ...lines, 'Ada,ada@example.com', 'Bo,ADA@example.com'].join('\n')
    await chooseFile(page, 'people.csv', file)
    await page.getByRole('button', { name: /Recognize people by/ }).click()
    await page.getByRole('option', { name: 'the identifier, then email' }).click()
    await page.getByText('Also by an email or phone that more than ten lines have').waitFor()
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('Imported: people.csv').waitFor()
    expect(await countOf(page, 'Created').textContent()).toBe('12')
    expect(await countOf(page, 'Overwrite an earlier line').textContent()).toBe('1')
    expect(await countOf(page, 'Not recognized by a shared email or phone').textContent()).toBe('11')
  })
})

it('an import lifts no unsubscription, unless somebody chooses that the answers of the file are given now', async () => {
  await organization.client.people.create({ external_id: '1', email: 'ada@example.com', email_consent: false })
  const file = 'external_id,email_consent\n1,yes'
  const state = async () => (await organization.client.people.get('1')).email_consent
  const runImport = async (page: Page) => {
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('Imported: consents.csv').waitFor()
  }
  await open(organization, '/import', async page => {
    await chooseFile(page, 'consents.csv', file)
    await runImport(page)
    expect(await state()).toBe(false)
  })
  await open(organization, '/import', async page => {
    await chooseFile(page, 'consents.csv', file)
    await page.getByRole('checkbox', { name: /given now. Only if people gave them just now/ }).press('Space')
    await runImport(page)
    expect(await state()).toBe(true)
  })
})

it('asks for the order of dates that do not tell it, and once for the origin of consents that a column grants', async () => {
  const { attributes, consentTypes } = organization.client.schema
  await attributes.create({ key: 'since', name: 'Customer since', owner: 'people', type: 'date' })
  const { id } = await consentTypes.create({ key: 'news', name: 'Newsletter', channels: [{ channel: 'email' }] })
  const file = 'Customer ID;Customer since;Newsletter\n1;01/02/2024;x\n2;03/04/2024;\n3;05/06/2024;no\n'
  await open(organization, '/import', async page => {
    await chooseFile(page, 'people.csv', file)
    const start = page.getByRole('button', { name: 'Import', exact: true })
    await page.getByText('The dates of the file do not tell their order').waitFor()
    expect(await start.isDisabled()).toBe(true)
    await page.getByRole('button', { name: '1 February: day first' }).click()
    expect(await start.isDisabled()).toBe(true)
    await page.getByRole('button', { name: /\bHow$/ }).click()
    await page.getByRole('option', { name: 'Paper' }).click()
    await page.getByRole('textbox', { name: 'Where' }).fill('Shop in Hamburg')
    await page.getByLabel('When', { exact: true }).fill('2024-06-01')
    await start.click()
    await page.getByText('Imported: people.csv').waitFor()
  })
  const { items } = await organization.client.consents.history('1').page()
  expect(items).toMatchObject([{ consent_type_id: id, state: true, method: 'paper', source: 'Shop in Hamburg' }])
  expect(await storedPeople(organization)).toMatchObject([
    { attribute_values: { since: '2024-02-01' }, email_consent: true },
    { attribute_values: { since: '2024-04-03' } },
    { attribute_values: { since: '2024-06-05' }, email_consent: false },
  ])
})

it('replaces a cell that many lines were refused for in all of them, and the import after a check does so too', async () => {
  await organization.client.schema.attributes.create({ key: 'member', owner: 'people', type: 'boolean' })
  const lines = Array.from({ length: 4_037 }, (_, n) => `${n},${n === 7 ? 'yes' : 'perhaps'}`)
  await open(organization, '/import', async page => {
    await chooseFile(page, 'people.csv', ['external_id,member', ...lines].join('\n'))
    await page.getByRole('button', { name: 'Check without storing' }).click()
    await page.getByText('Checked. Nothing was stored.').waitFor()
    await page.getByLabel('member: “perhaps” was refused in 4,036 lines. Replace it by').fill('no')
    await page.getByRole('button', { name: 'Replace in all 4,036 lines' }).click()
    await countOf(page, 'Refused').filter({ hasText: /^0$/ }).waitFor()
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('Imported: people.csv').waitFor()
    expect(await countOf(page, 'Created').textContent()).toBe('4,037')
  })
  const stored = await storedPeople(organization)
  const members = stored.filter(person => (person.attribute_values as { member: boolean }).member)
  expect([stored.length, members.map(({ external_id }) => external_id)]).toEqual([4_037, ['7']])
})

it('reads the next file with the same header as the last one, says so, and can forget it', async () => {
  const remembered = () => organization.client.imports.mappings()
  const becomes = (page: Page) => page.getByRole('button', { name: /Becomes: Ort/ })
  await open(organization, '/import', async page => {
    await chooseFile(page, 'people.csv', 'Nr;Ort\n1;Rom\n')
    await mapColumn(page, 'Nr', 'Identifier')
    await mapColumn(page, 'Ort', 'First name')
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('Imported: people.csv').waitFor()
    await expect.poll(remembered).toMatchObject([{ header: ['Nr', 'Ort'], fields: ['external_id', 'first_name'] }])
    await page.getByRole('button', { name: 'Import another file' }).click()
    await chooseFile(page, 'more.csv', 'Nr;Ort\n2;Paris\n')
    await page.getByText(/The columns become what they became in the import of/).waitFor()
    expect(await becomes(page).textContent()).toContain('First name')
    await page.getByRole('button', { name: 'Forget it' }).click()
    await becomes(page).filter({ hasText: 'Choose a field' }).waitFor()
    expect(await remembered()).toEqual([])
  })
})
