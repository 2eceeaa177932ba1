import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'
import { sealLedgers } from '../../test/support/ledger.ts'

const { service, open } = useConsole()

/** An organization with two people, and the receipt of the answer by which one of them may be written to. */
async function withAnswers() {
  const organization = await service.organization()
  const { client } = organization
  await client.people.create({ external_id: 'ada', email: 'ada@example.com', email_consent: true })
  await client.people.create({ external_id: 'grace', email: 'grace@example.com', email_consent: false })
  await sealLedgers(service)
  const receipt = await client.consents.receipt('ada', { consent_type_id: 1, channel: 'email' })
  return { organization, receipt }
}

const fileOf = (text: string) => ({
  name: 'receipt.json',
  mimeType: 'application/json',
  buffer: Buffer.from(text),
})
const file = (content: unknown) => fileOf(JSON.stringify(content))

it('an auditor verifies a receipt without the server, and a changed bit is named', async () => {
  const { organization, receipt } = await withAnswers()
  await open(organization, '/ledger', async page => {
    await page.getByText(receipt.verifier_key).first().waitFor()
    // Nothing is sent from here on: the page has no network at all.
    await page.context().setOffline(true)
    const choose = page.getByLabel('Drop a receipt here')
    await choose.setInputFiles(file(receipt))
    await page.getByText('The receipt is valid.').waitFor()
    await page.getByText(receipt.entry.person_id).waitFor()
    await page.getByText('Consent type', { exact: true }).waitFor()

    const salt = Buffer.from(receipt.salt, 'base64')
    salt[0]! ^= 1
    await choose.setInputFiles(file({ ...receipt, salt: salt.toString('base64') }))
    await page.getByText('The receipt is not valid: salt.').waitFor()
    await choose.setInputFiles(file({ ...receipt, entry: { ...receipt.entry, state: false } }))
    await page.getByText('The receipt is not valid: entry.').waitFor()
    await choose.setInputFiles(fileOf(JSON.stringify(receipt).replace('"state":true', '"state":false,"state":true')))
    await page.getByText('The receipt is not valid: receipt.').waitFor()
    await page.getByText('An object of the receipt has the member "state" twice.').waitFor()
    await page.getByRole('combobox', { name: /Language/ }).selectOption('Deutsch')
    await page.getByText('Ein Objekt (der Beleg) enthält "state" zweimal.').waitFor()
    await page.getByRole('combobox', { name: /Sprache/ }).selectOption('English')

    await choose.setInputFiles(file(receipt))
    await page.getByLabel(/Key that must have signed/).fill(`${receipt.verifier_key.slice(0, -8)}AAAAAAA=`)
    await page.getByText('The receipt is not valid: key.').waitFor()
  })
})

it('a marketer sees how many people may be written to, by purpose and channel', async () => {
  const { organization } = await withAnswers()
  await open(organization, '/consents?interval=week', async page => {
    const row = page.getByRole('row', { name: /^Marketing Email/ })
    await row.waitFor()
    expect(await row.getByRole('cell').allTextContents()).toEqual(['Email', '1', '1', '1', '0'])
    await page.getByRole('img', { name: /Marketing, Email: answers in force/ }).waitFor()
  })
})

it('each number of the consents leads to exactly its people', async () => {
  const organization = await service.organization()
  const { people, schema } = organization.client
  const channels = (double_opt_in: boolean) => [{ channel: 'email' as const, is_default: false, double_opt_in }]
  const offers = await schema.consentTypes.create({
    ...{ key: 'offers', name: 'Offers', default_state: true, channels: channels(false) },
  })
  const news = await schema.consentTypes.create({ key: 'news', name: 'News', channels: channels(true) })
  const answer = (consent_type_id: number, state: boolean) => ({ consent_type_id, channel: 'email' as const, state })
  const bodies = [
    { email: 'a@example.org', consents: [answer(1, true), answer(offers.id, true), answer(news.id, true)] },
    { consents: [answer(1, true), answer(offers.id, false), answer(news.id, false)] },
    { email: 'c@example.org', consents: [answer(1, false), answer(offers.id, false)] },
    { email: 'd@example.org' },
    { first_name: 'Eve' },
  ]
  await people.batch(bodies.map((body, index) => ({ op: 'create', body: { external_id: `p${index}`, ...body } })))
  await open(organization, '/consents', async page => {
    const links = page.getByRole('table').getByRole('link')
    await links.first().waitFor()
    const labels = await links.evaluateAll(all => all.map(link => link.getAttribute('aria-label')!))
    expect(labels.filter(label => !label.includes('SMS'))).toEqual([
      '1 May be written to: Marketing, Email',
      '2 Granted: Marketing, Email',
      '1 Refused: Marketing, Email',
      '0 Waiting for confirmation: Marketing, Email',
      '2 May be written to: Offers, Email',
      '1 Granted: Offers, Email',
      '2 Refused: Offers, Email',
      '0 Waiting for confirmation: Offers, Email',
      '0 May be written to: News, Email',
      '0 Granted: News, Email',
      '1 Refused: News, Email',
      '1 Waiting for confirmation: News, Email',
    ])
    for (const label of labels) {
      await page.getByRole('link', { name: label, exact: true }).click()
      const count = Number(label.split(' ')[0])
      await page
        .getByRole('status')
        .filter({ hasText: count === 1 ? /^1 person$/ : new RegExp(`^${count} people$`) })
        .waitFor()
      await page.goBack()
      await links.first().waitFor()
    }
  })
})

it('an operator reads what the doctor says in the language of the page', async () => {
  await open(
    await service.organization(),
    '/operations',
    async page => {
      await page
        .getByText(/Befunde? (muss|müssen) jetzt behoben werden|Befunde? sollten? bald|Alles ist in Ordnung/)
        .first()
        .waitFor()
      await page.getByText('kith backup hat diese Datenbank noch nie gesichert.').waitFor()
      expect(await page.getByRole('textbox', { name: 'Jetzt sichern' }).inputValue()).toMatch(
        /^kith backup kith-\d{4}-\d\d-\d\d\.backup$/,
      )
      await page.getByText(/Prüfungen sind in Ordnung/).click()
      await page.getByText(/^PostgreSQL \S+ antwortet/).waitFor()
      await page.getByText(/^Die Datenbank hat alle Migrationen, bis /).waitFor()
    },
    { locale: 'de-AT' },
  )
})
