import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'
import { countOf } from '../../test/support/console-import.ts'
import { useShop } from '../../test/support/shop.ts'

const { service, open } = useConsole()
const organization = useShop(service)

const lineCount = 5_000

/** The spellings of a number that people mix in one column. */
const spellings: ((digits: string) => string)[] = [
  digits => `0171 ${digits}`,
  digits => `0171/${digits}`,
  digits => `(0171) ${digits.slice(0, 3)}-${digits.slice(3)}`,
  digits => `+49 171 ${digits}`,
  digits => `0049 171 ${digits}`,
  digits => `+49 (0)171 ${digits}`,
  digits => `0171 ${digits.slice(0, 4)} ${digits.slice(4)}`,
]

const german = new Intl.NumberFormat('de-DE', { minimumFractionDigits: 2 })
const day = (n: number) =>
  new Date(Date.UTC(1950, 0, 1 + n * 5)).toLocaleDateString('de-DE', {
    ...{ timeZone: 'UTC', day: '2-digit', month: '2-digit', year: 'numeric' },
  } as const)

/** A line of the file as Excel writes it in German. */
function lineOf(n: number): string {
  const phone = n % 9 === 8 ? '' : spellings[n % spellings.length]!(String(1_000_000 + n))
  return [
    `K-${n}`,
    ['Jörg', 'Zoë', 'Änne', 'François'][n % 4],
    n % 50 === 0 ? '"Müller; ""Söhne"""' : `Großmann-${n}`,
    `kunde${n}@example.com`,
    phone,
    day(n % 4_000),
    german.format(((n * 1_234_567) % 9_999_999) / 100),
    ['ja', 'nein', ''][n % 3],
    ['x', ''][n % 2],
    `${day(4_000 + (n % 1_000))} 14:30`,
    ['Ja', 'NEIN', ''][n % 3],
  ].join(';')
}

const header =
  'Kundennummer;Vorname;Nachname;E-Mail-Adresse;Handynummer;Geburtsdatum;Umsatz;Stammkunde;Gesperrt;Letzter Besuch;Newsletter'

it('imports a file of a German Excel without a wrong refusal, in German, with one question', async () => {
  const { client } = organization
  const attributes = [
    ['umsatz', 'Umsatz', 'number'],
    ['regular', 'Stammkunde', 'boolean'],
    ['blocked', 'Gesperrt', 'boolean'],
    ['last_visit', 'Letzter Besuch', 'datetime'],
  ] as const
  for (const [key, name, type] of attributes)
    await client.schema.attributes.create({ key, name, owner: 'people', type })
  await client.schema.consentTypes.create({ key: 'news', name: 'Newsletter', channels: [{ channel: 'email' }] })
  await organization.ok('PATCH', '/v1/schema/settings', { default_country: 'DE' })
  const lines = Array.from({ length: lineCount }, (_, n) => lineOf(n))
  const file = Buffer.from(`${[header, ...lines].join('\r\n')}\r\n`, 'latin1')
  await open(
    organization,
    '/import',
    async page => {
      await page
        .getByLabel(/Legen Sie eine CSV-Datei/)
        .setInputFiles({ name: 'kunden.csv', mimeType: 'text/csv', buffer: file })
      await page.getByText('Erkannt: windows-1252').first().waitFor()
      await page.getByText('Erkannt: 0,5').first().waitFor()
      await page.getByRole('button', { name: /\bWie$/ }).click()
      await page.getByRole('option', { name: 'Webformular' }).click()
      await page.getByRole('button', { name: 'Prüfen, ohne zu speichern' }).click()
      await page.getByText('Geprüft. Nichts wurde gespeichert.').waitFor({ timeout: 120_000 })
      expect(await countOf(page, 'Abgelehnt').textContent()).toBe('0')
      await page.getByRole('button', { name: 'Importieren', exact: true }).click()
      await page.getByText('Importiert: kunden.csv').waitFor({ timeout: 120_000 })
      expect(await countOf(page, 'Abgelehnt').textContent()).toBe('0')
      expect(await countOf(page, 'Angelegt').textContent()).toBe('5.000')
      expect(await countOf(page, 'Mit einer Nummer, die keine ist').count()).toBe(0)
    },
    { locale: 'de-DE' },
  )
  expect(await client.people.get('K-50')).toMatchObject({
    ...{
      first_name: 'Änne',
      last_name: 'Müller; "Söhne"',
      email: 'kunde50@example.com',
      mobile_number: '0171/1000050',
    },
    ...{ date_of_birth: '1950-09-08', email_consent: null },
    attribute_values: { umsatz: 17_283.56, blocked: true },
  })
  expect(await client.people.get('K-0')).toMatchObject({
    attribute_values: { umsatz: 0, regular: true },
    email_consent: true,
  })
  const { items } = await client.consents.history('K-0').page()
  expect(items).toMatchObject([{ state: true, method: 'web_form' }])
}, 300_000)
