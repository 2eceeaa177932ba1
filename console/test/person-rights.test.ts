import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ConsentReceipt, DossierLine } from '../../client/index.ts'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { accessibilityFaults } from '../../test/support/accessibility.ts'
import { useBrowser } from '../../test/support/browser.ts'
import { personOpener } from '../../test/support/console.ts'
import { follow } from '../../test/support/followers.ts'
import { startSealing } from '../../test/support/ledger.ts'
import { useOwnService } from '../../test/support/service.ts'
import { button, choose, dialog, downloaded, history, section } from './person-page.ts'

const service = useOwnService()
const browser = useBrowser()

// The receipt of an answer waits until it is sealed.
let stopSealing: () => Promise<void>
beforeAll(() => {
  stopSealing = startSealing(service)
})
afterAll(() => stopSealing?.())

const indexWords = () => follow(service.db, [searchFollower()])

const openPerson = personOpener(service, browser)

describe('a marketer', () => {
  it('sees why somebody may not be written to, with the evidence of each answer, and records a new one', async () => {
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
    const [recorded] = (await organization.client.consents.history('ada')).items
    expect(recorded).toMatchObject({ state: true, method: 'phone', source: 'shop counter' })
    expect(recorded!.actor).toMatch(/^Ada/)
  })
})

describe('a data protection officer', () => {
  it('exports the dossier and erases the person, and gets the certificate', async () => {
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
        expect(certificate.trim()).toBe((await erasures.list()).items[0]!.certificate)
        await box.getByRole('button', { name: 'Close' }).click()
        await page.getByRole('heading', { name: 'This person was erased' }).waitFor()
        expect(await page.locator('main').innerText()).not.toContain('ada@example.com')
        const again = await downloaded(page, () => button(page, 'Download the certificate').click())
        expect(again).toBe(certificate)
      },
      { expectedErrors: /404/ },
    )
    await expect(people.getById(id)).rejects.toMatchObject({ status: 404 })
  })

  it('previews a merge side by side, merges, arrives by the old identifier, and undoes it', async () => {
    const organization = await service.organization()
    const { people } = organization.client
    await people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace' })
    const other = await people.create({ external_id: 'ada-news', last_name: 'Byron', email: 'ada@example.com' })
    await indexWords()
    await openPerson(organization, 'ada', async page => {
      await choose(page, /Merge/)
      await dialog(page)
        .getByLabel(/Search by name/)
        .fill('byrn')
      await dialog(page).getByRole('button', { name: /Byron/ }).click()
      const rowOf = async (name: string) =>
        (await dialog(page).getByRole('row', { name }).innerText()).split(/\s*\t\s*/)
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
      await button(page, 'Undo the merge').click()
      await page.getByText(/The merge was undone/).waitFor()
    })
    expect((await people.get('ada')).email).toBeNull()
    expect(await people.get('ada-news')).toMatchObject({ id: other.id, email: 'ada@example.com' })
  })
})

it('what the scopes of a session do not allow is not shown', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada', attribute_values: { city: 'Rome' } })
  await openPerson(
    organization,
    'ada',
    async page => {
      await page.getByRole('heading', { name: 'Ada', exact: true }).waitFor()
      await section(page, 'Attributes').getByText('Rome').waitFor()
      for (const name of [/^Edit/, 'More', 'As of…'])
        expect([name, await button(page, name).count()]).toEqual([name, 0])
      await page.getByText(/may not read the history/).waitFor()
      await button(page, /Email: No answer/).click()
      await dialog(page)
        .getByText(/take the scope consents:read/)
        .waitFor()
      expect(await button(page, 'Record an answer').count()).toBe(0)
    },
    { scope: 'people:read' },
  )
})

it('hostile names and values are text, of any length and direction, and the page keeps its width', async () => {
  const organization = await service.organization()
  const { people } = organization.client
  const script = '<img src=x onerror="document.title=\'broken\'">'
  const external_id = 'a/b?c#d%2e "é'
  await people.create({
    external_id,
    first_name: script,
    last_name: '\u202Eevil \u05d0\u05d1',
    attribute_values: {
      [script]: script,
      long: 'x'.repeat(60_000),
      link: 'javascript:alert(1)',
      '__proto__ ': [script],
    },
  })
  await people.patch(external_id, { first_name: `${script}2`, attribute_values: { long: null } })
  for (const width of [360, 1280])
    await openPerson(
      organization,
      encodeURIComponent(external_id),
      async page => {
        await section(page, 'Attributes').getByText(script).first().waitFor()
        await expect.poll(() => history(page).count()).toBe(2)
        await history(page).first().getByRole('button', { name: 'Show all of it' }).click()
        expect(await page.locator('img[src="x"], main script, a[href^="javascript"]').count()).toBe(0)
        expect(await page.title()).toContain('<img src=x')
        const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth')
        expect([width, overflow <= 0]).toEqual([width, true])
      },
      { context: { viewport: { width, height: 800 } } },
    )
})

const schemes = ['light', 'dark'] as const
const widths = [360, 1280]

it('axe finds nothing on the page, in its forms and in its dialogs, in light and dark, narrow and wide', async () => {
  const organization = await service.organization()
  const { people, schema } = organization.client
  await schema.attributes.create({ owner: 'people', key: 'referrer', type: 'person' })
  await schema.attributes.create({ owner: 'people', key: 'tags', type: 'text', cardinality: 'many' })
  const attribute_values = { tags: ['a'], nick: 'x', referrer: 'bob' }
  const consents = [{ consent_type_id: 1, channel: 'email' as const, state: false, method: 'phone' as const }]
  await people.create({ external_id: 'ada', first_name: 'Ada', consents, attribute_values })
  await people.create({ external_id: 'ada-2', first_name: 'Ada', email: 'ada@example.com' })
  await indexWords()
  const faults: string[] = []
  const check = async (page: Page, place: string) => {
    for (const width of widths)
      for (const colorScheme of schemes) {
        await page.setViewportSize({ width, height: 800 })
        await page.emulateMedia({ colorScheme })
        faults.push(...(await accessibilityFaults(page)).map(fault => `${place}, ${width} ${colorScheme}: ${fault}`))
      }
  }
  await openPerson(organization, 'ada', async page => {
    await section(page, 'Linked people and records').getByRole('link').first().waitFor()
    await history(page).first().waitFor()
    await check(page, 'page')
    await button(page, 'Edit: Profile').click()
    await button(page, 'Edit: Attributes').click()
    await check(page, 'forms')
    await button(page, 'Cancel').first().click()
    await button(page, 'Cancel').first().click()
    await button(page, /^Marketing, Email/).click()
    await button(page, 'Record an answer').click()
    await check(page, 'answers')
    await page.keyboard.press('Escape')
    await choose(page, /Merge/)
    await dialog(page)
      .getByLabel(/Search by name/)
      .fill('ada-2')
    await dialog(page).getByRole('button', { name: /ada-2/ }).click()
    await dialog(page).getByRole('row').first().waitFor()
    await check(page, 'merge')
    await page.keyboard.press('Escape')
    await choose(page, /Erase/)
    await page.getByRole('textbox', { name: 'Reason' }).fill('Request')
    await button(page, 'Show what goes').click()
    await page.getByLabel(/to confirm/).waitFor()
    await check(page, 'erase')
    await page.goto(`${service.address}/console/people/ada?version=1`)
    await page.getByText(/You see this person as of/).waitFor()
    await check(page, 'past')
  })
  expect(faults).toEqual([])
})
