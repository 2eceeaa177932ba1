import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ConsentReceipt, DossierLine } from '../../client/index.ts'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { indexWords } from '../../test/support/console-people.ts'
import { choose, downloaded, section } from '../../test/support/console-person.ts'
import { startSealing } from '../../test/support/ledger.ts'

const { service, openPerson } = useConsole()

// The receipt of an answer waits until it is sealed.
let stopSealing: () => Promise<void>
beforeAll(() => {
  stopSealing = startSealing(service)
})
afterAll(() => stopSealing?.())

it('a marketer sees why somebody may not be written to, with the evidence of each answer, and records a new one', async () => {
  const organization = await service.organization()
  const { people, schema } = organization.client
  await schema.consentTypes.addText(1, { language: 'en', text: 'Yes, send me the newsletter.' })
  const answer = { consent_type_id: 1, channel: 'email', method: 'paper', source: 'trade fair' } as const
  await people.create({
    external_id: 'ada',
    consents: [{ ...answer, state: true, text_version: 1, collected_at: '2026-01-02T10:00:00Z', ip: '192.0.2.7' }],
  })
  await people.patch('ada', { consents: [{ ...answer, state: false, method: 'phone', source: 'call centre' }] })
  await openPerson(organization, 'ada', async page => {
    await section(page, 'Consents').getByText('no email address').waitFor()
    await button(page, /^Marketing, Email: Refused/).click()
    await dialog(page).getByText('The person may not be written to.').waitFor()
    const reasons = await dialog(page).getByRole('status').getByRole('listitem').allInnerTexts()
    expect(reasons[0]).toBe('The person has no email address.')
    expect(reasons[1]).toMatch(/^The person refused it, /)
    const answers = dialog(page).getByRole('region', { name: 'Answers and their evidence' }).getByRole('listitem')
    expect(await answers.first().innerText()).toMatch(
      /Refused\s*Stands[\s\S]*by tests[\s\S]*Phone call[\s\S]*call centre/,
    )
    const old = answers.last()
    expect(await old.innerText()).toMatch(/Granted[\s\S]*2 Jan 2026[\s\S]*Paper[\s\S]*trade fair[\s\S]*192\.0\.2\.7/)
    await old.getByRole('button', { name: 'Show the text' }).click()
    await old.getByText('Yes, send me the newsletter.').waitFor()
    const receipt = JSON.parse(
      await downloaded(page, () => old.getByRole('button', { name: 'Download the receipt' }).click()),
    ) as ConsentReceipt
    expect(receipt.entry).toMatchObject({ state: true, source: 'trade fair', text_version: 1 })
    await button(page, 'Record an answer').click()
    await dialog(page)
      .getByRole('button', { name: /Answer$/ })
      .click()
    await page.getByRole('option', { name: 'Granted' }).click()
    await page.getByLabel('Where').fill('shop counter')
    await button(page, 'Record the answer').click()
    await expect.poll(() => answers.count()).toBe(3)
  })
  const [recorded] = (await organization.client.consents.history('ada').page()).items
  expect(recorded).toMatchObject({ state: true, method: 'phone', source: 'shop counter' })
  expect(recorded!.actor).toMatch(/^Ada/)
})

it('a data protection officer exports the dossier and erases the person, and gets the certificate', async () => {
  const organization = await service.organization()
  const { people, erasures } = organization.client
  const { id } = await people.create({ external_id: 'ada', first_name: 'Ada', email: 'ada@example.com' })
  await openPerson(
    organization,
    'ada',
    async page => {
      await choose(page, /Download the dossier/)
      const dossierBy = (name: string) => downloaded(page, () => dialog(page).getByRole('button', { name }).click())
      const dossierPage = await dossierBy('Download as a page')
      expect(dossierPage).toMatch(
        /^<!doctype html>[\s\S]*Your personal data[\s\S]*ada@example\.com[\s\S]*This page is complete\./,
      )
      await dialog(page)
        .getByText(/is complete/)
        .waitFor()
      const lines = (await dossierBy('Download as data'))
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as DossierLine)
      expect(lines.map(({ type }) => type)).toEqual(expect.arrayContaining(['about', 'profile', 'change', 'end']))
      await dialog(page)
        .getByText(/is complete/)
        .waitFor()
      await dialog(page).getByRole('button', { name: 'Close' }).click()
      await choose(page, /Erase/)
      const box = page.getByRole('alertdialog')
      await box.getByRole('button', { name: 'Show what goes' }).click()
      await box.getByText('Write a reason.').waitFor()
      await box.getByLabel('Reason').fill('Request of 12 May')
      await box.getByRole('button', { name: 'Show what goes' }).click()
      await box.getByText('Profile').waitFor()
      expect((await people.get('ada')).version).toBe(1)
      const erase = box.getByRole('button', { name: 'Erase for good' })
      await box.getByLabel('Type ada to confirm').fill('adam')
      expect(await erase.isDisabled()).toBe(true)
      await box.getByLabel('Type ada to confirm').fill('ada')
      await erase.click()
      const certificate = await downloaded(page, () =>
        box.getByRole('button', { name: 'Download the certificate' }).click(),
      )
      expect(certificate.trim()).toBe((await erasures.list().page()).items[0]!.certificate)
      await box.getByRole('button', { name: 'Close' }).click()
      await page.getByRole('heading', { name: 'This person was erased' }).waitFor()
      expect(await page.locator('main').innerText()).not.toContain('ada@example.com')
      const again = await downloaded(page, () => button(page, 'Download the certificate').click())
      expect(again).toBe(certificate)
      await page.goto(`${service.address}/console/erasures`)
      const row = page.getByRole('row', { name: /Request of 12 May/ })
      const listed = await downloaded(page, () => row.getByRole('button', { name: /Download the certificate/ }).click())
      expect(listed).toBe(certificate)
      await row.getByRole('button', { name: /Details of erasure/ }).click()
      await dialog(page).getByText('backups, dumps, archives and replicas of the database').waitFor()
    },
    { expectedErrors: /404/ },
  )
  await expect(people.get({ id })).rejects.toMatchObject({ status: 404 })
})

it('a data protection officer previews a merge side by side, merges, arrives by the old identifier, and undoes it', async () => {
  const organization = await service.organization()
  const { people } = organization.client
  await people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace' })
  const other = await people.create({
    external_id: 'ada-news',
    last_name: 'Byron',
    language: 'en',
    email: 'ada@example.com',
  })
  await indexWords(service)
  await openPerson(organization, 'ada', async page => {
    await choose(page, /Merge/)
    await dialog(page)
      .getByLabel(/Search by name/)
      .fill('byrn')
    await dialog(page).getByRole('button', { name: /Byron/ }).click()
    const rowOf = async (name: string) => (await dialog(page).getByRole('row', { name }).innerText()).split(/\s*\t\s*/)
    await dialog(page).getByRole('row', { name: 'Email' }).waitFor()
    expect(await rowOf('Email')).toEqual(['Email', '—', 'ada@example.com', 'ada@example.com'])
    expect(await rowOf('Last name')).toEqual(['Last name', 'Lovelace', 'Byron', 'Lovelace'])
    expect((await people.get('ada')).email).toBeNull()
    await dialog(page).getByRole('button', { name: 'Merge', exact: true }).click()
    await button(page, 'Undo the merge').waitFor()
    expect((await people.get('ada-news')).external_id).toBe('ada')
    await page.goto(`${service.address}/console/people/ada-news`)
    await page.getByText('“ada-news” leads to this person.').waitFor()
    expect(new URL(page.url()).pathname).toBe('/console/people/ada')
    await people.patch('ada', { language: 'de' })
    await button(page, 'Undo the merge').click()
    await page.getByText(/The merge was undone/).waitFor()
    await page.getByText('This person keeps what was written after the merge: Language.').waitFor()
  })
  expect((await people.get('ada')).email).toBeNull()
  expect(await people.get('ada-news')).toMatchObject({ id: other.id, email: 'ada@example.com' })
})
