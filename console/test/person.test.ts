import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ConsentReceipt, DossierLine } from '../../client/index.ts'
import { searchFollower } from '../../src/entities/indexes/search-index.ts'
import { useBrowser } from '../../test/support/browser.ts'
import { accessibilityFaults, openConsole } from '../../test/support/console.ts'
import { follow } from '../../test/support/followers.ts'
import { startSealing } from '../../test/support/ledger.ts'
import { type Organization, useService } from '../../test/support/service.ts'

const service = useService()
const browser = useBrowser()

// The receipt of an answer waits until it is sealed.
let stopSealing: () => Promise<void>
beforeAll(() => {
  stopSealing = startSealing(service)
})
afterAll(() => stopSealing?.())

const indexWords = () => follow(service.db, [searchFollower()])

type Options = Parameters<typeof openConsole>[3]

/** Opens the page of a person. */
const openPerson = (
  organization: Organization,
  address: string,
  work: (page: Page) => Promise<void>,
  options?: Options,
) => openConsole({ service, browser, organization }, `/people/${address}`, work, options)

const section = (page: Page, name: string) => page.getByRole('region', { name, exact: true })
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name })
const dialog = (page: Page) => page.getByRole('dialog')
const history = (page: Page) => page.getByRole('list', { name: 'History' }).getByRole('listitem')

/** Chooses an action of the menu. */
async function choose(page: Page, action: RegExp): Promise<void> {
  await button(page, 'More').click()
  await page.getByRole('menuitem', { name: action }).click()
}

/** The content of the file that `work` makes the browser save. */
async function downloaded(page: Page, work: () => Promise<unknown>): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent('download'), work()])
  return readFile(await download.path(), 'utf8')
}

describe('a support agent', () => {
  it('sees who changed the address, when, and what it was, and takes the change back', async () => {
    const organization = await service.organization()
    const { people } = organization.client
    await people.create({ external_id: 'ada', first_name: 'Ada', attribute_values: { street: 'Mill Lane 1' } })
    await people.patch('ada', { attribute_values: { street: 'High Street 2' }, email: 'ada@example.com' })
    await openPerson(organization, 'ada', async page => {
      const change = history(page).first()
      await expect.poll(() => change.innerText()).toMatch(/tests\s*changed/)
      const text = await change.innerText()
      expect(text).toContain('Version 2')
      expect(text).toMatch(/street\s*before:\s*Mill Lane 1\s*after:\s*High Street 2/)
      await change.getByRole('button', { name: 'Undo the change of version 2' }).click()
      await expect.poll(() => dialog(page).getByRole('row').allInnerTexts()).toHaveLength(3)
      await button(page, 'Set these values').click()
      await expect.poll(() => history(page).count()).toBe(3)
      expect(await history(page).first().innerText()).toMatch(/^Ada/)
    })
    const { email, attribute_values } = await people.get('ada')
    expect([email, attribute_values]).toEqual([null, { street: 'Mill Lane 1' }])
  })

  it('pages through a long history, back to the creation', async () => {
    const organization = await service.organization()
    const { people } = organization.client
    await people.create({ external_id: 'ada' })
    for (let number = 1; number <= 30; number++) await people.patch('ada', { first_name: `Ada ${number}` })
    await openPerson(organization, 'ada', async page => {
      await button(page, 'Show older changes').click()
      await expect.poll(() => history(page).count()).toBe(31)
      expect(await history(page).last().innerText()).toContain('created')
    })
  })

  it('sees the person as of a moment, plainly marked and read only, and restores a version', async () => {
    const organization = await service.organization()
    const { people } = organization.client
    const { id } = await people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Byron' })
    const before = await people.get('ada')
    await people.patch('ada', { last_name: 'Lovelace', attribute_values: { city: 'London' } })
    await openPerson(organization, `ada?at=${encodeURIComponent(before.updated_at)}`, async page => {
      await page.getByRole('heading', { name: 'Ada Byron' }).waitFor()
      await page.getByText(/You see this person as of/).waitFor()
      expect(await button(page, /^Edit/).count()).toBe(0)
      expect(await button(page, 'More').count()).toBe(0)
      await button(page, 'Restore this version').click()
      await button(page, 'Set these values').click()
      await page.getByText('Version 3', { exact: true }).waitFor()
      expect(new URL(page.url()).search).toBe('')
    })
    expect(await people.getById(id)).toMatchObject({ last_name: 'Byron', attribute_values: {}, version: 3 })
    await openPerson(
      organization,
      'ada',
      async page => {
        await button(page, 'As of…').click()
        await page.getByLabel('Date and time').fill('2020-01-01T12:00:00')
        await dialog(page).getByRole('button', { name: 'Show' }).click()
        await page.getByText(/The person did not exist then/).waitFor()
        await page.goBack()
        await page.getByRole('heading', { name: 'Ada Byron' }).waitFor()
      },
      { expectedErrors: /404/ },
    )
  })

  it('deletes a person and brings the person back, by the last name too', async () => {
    const organization = await service.organization()
    const { people } = organization.client
    const { id } = await people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Lovelace' })
    await openPerson(
      organization,
      'ada',
      async page => {
        await choose(page, /Delete/)
        await page.getByRole('alertdialog').getByRole('button', { name: 'Delete the person' }).click()
        await page.getByRole('heading', { name: 'Ada Lovelace was deleted' }).waitFor()
        await expect(people.getById(id)).rejects.toMatchObject({ status: 404 })
        await page.goto(`${service.address}/console/people/ada`)
        await page.getByRole('heading', { name: 'Ada Lovelace was deleted' }).waitFor()
        await button(page, 'Restore the person').click()
        await page.getByRole('heading', { name: 'Ada Lovelace', exact: true }).waitFor()
        await expect.poll(() => history(page).first().innerText()).toContain('restored')
        expect(new URL(page.url()).pathname).toBe('/console/people/ada')
      },
      { expectedErrors: /404/ },
    )
    expect(await people.getById(id)).toMatchObject({ external_id: 'ada', version: 3 })
  })

  it('learns that a person is a placeholder, and completes it', async () => {
    const organization = await service.organization()
    const { people, schema } = organization.client
    await schema.attributes.create({ owner: 'people', key: 'referrer', type: 'person' })
    await people.create({ external_id: 'ada', first_name: 'Ada', attribute_values: { referrer: 'charles' } })
    await openPerson(organization, 'charles', async page => {
      await page.getByText('Nobody has created this person yet.').waitFor()
      await section(page, 'Linked people and records').getByRole('link', { name: 'Ada' }).waitFor()
      await button(page, 'Edit: Profile').click()
      await page.getByLabel('First name').fill('Charles')
      await button(page, 'Save').click()
      await page.getByRole('heading', { name: 'Charles', exact: true }).waitFor()
      expect(await page.getByText('Nobody has created this person yet.').count()).toBe(0)
    })
    expect((await people.get('charles')).state).toBe('active')
  })

  it('edits attributes by their types, and values under keys that nobody declared as JSON', async () => {
    const organization = await service.organization()
    const { people, schema } = organization.client
    await schema.attributes.create({ owner: 'people', key: 'age', type: 'number', minimum: 0 })
    await schema.attributes.create({ owner: 'people', key: 'tags', type: 'text', cardinality: 'many' })
    await schema.attributes.create({ owner: 'people', key: 'level', type: 'text', enum: ['gold', 'silver'] })
    await people.create({ external_id: 'ada', attribute_values: { tags: ['vip'], note: { a: 1 } } })
    await openPerson(
      organization,
      'ada',
      async page => {
        await button(page, 'Edit: Attributes').click()
        await page.getByLabel('age', { exact: true }).fill('many')
        await page.getByLabel('note', { exact: true }).fill('{"a":')
        await button(page, 'Save').click()
        await page.getByText('Write a number, such as 12 or 12.5.').waitFor()
        await page.getByText(/This is not JSON/).waitFor()
        await page.getByLabel('note', { exact: true }).fill('{"a": 2}')
        await page.getByLabel('age', { exact: true }).fill('-1')
        await button(page, 'Add another value').click()
        await page.getByLabel('tags, value 2').fill('press')
        await button(page, /level/).click()
        await page.getByRole('option', { name: 'gold' }).click()
        await page.getByLabel('Add a value under a new key').fill('shoe_size')
        await button(page, 'Add').last().click()
        await page.getByLabel('shoe_size').fill('39.5')
        await button(page, 'Save').click()
        // The rule of the attribute is refused by the service, and the reason stands at the field.
        await expect.poll(() => page.getByLabel('age', { exact: true }).getAttribute('aria-invalid')).toBe('true')
        await page.getByLabel('age', { exact: true }).fill('36')
        await button(page, 'Save').click()
        await button(page, 'Edit: Attributes').waitFor()
      },
      { expectedErrors: /400/ },
    )
    expect((await people.get('ada')).attribute_values).toEqual({
      age: 36,
      tags: ['vip', 'press'],
      level: 'gold',
      note: { a: 2 },
      shoe_size: 39.5,
    })
  })
})

describe('two people', () => {
  it('edit one field: the second sees both values and what was, chooses, and loses nothing', async () => {
    const organization = await service.organization()
    const { people } = organization.client
    await people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Byron' })
    await openPerson(
      organization,
      'ada',
      async page => {
        await button(page, 'Edit: Profile').click()
        await page.getByLabel('Last name').fill('Lovelace')
        await page.getByLabel('First name').fill('Augusta Ada')
        await people.patch('ada', { last_name: 'King', language: 'en' })
        await button(page, 'Save').click()
        const conflict = page.getByRole('group', { name: 'Last name' })
        await expect
          .poll(async () => (await conflict.innerText()).split(/\s*\n\s*/))
          .toEqual(['Last name', 'When you began', 'Byron', 'Theirs', 'King', 'Yours', 'Lovelace'])
        // Only the first name here and the language there differ: these two need no choice.
        expect(await page.getByRole('group').count()).toBe(1)
        expect(await button(page, 'Save').isDisabled()).toBe(true)
        expect(await page.getByLabel('First name').inputValue()).toBe('Augusta Ada')
        await conflict.getByRole('radio', { name: /Yours/ }).check()
        await button(page, 'Save').click()
        await page.getByRole('heading', { name: 'Augusta Ada Lovelace' }).waitFor()
      },
      { expectedErrors: /412/ },
    )
    expect(await people.get('ada')).toMatchObject({
      first_name: 'Augusta Ada',
      last_name: 'Lovelace',
      language: 'en',
      version: 3,
    })
  })

  it('edit different fields: both are kept without a question', async () => {
    const organization = await service.organization()
    const { people } = organization.client
    await people.create({ external_id: 'ada', first_name: 'Ada' })
    await openPerson(
      organization,
      'ada',
      async page => {
        await button(page, 'Edit: Profile').click()
        await page.getByLabel('Last name').fill('Lovelace')
        await people.patch('ada', { language: 'en' })
        await button(page, 'Save').click()
        await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
      },
      { expectedErrors: /412/ },
    )
    expect(await people.get('ada')).toMatchObject({ last_name: 'Lovelace', language: 'en' })
  })
})

it('a service that cannot answer leaves the input in the form, and the next attempt stores it', async () => {
  const organization = await service.organization()
  const { people } = organization.client
  await people.create({ external_id: 'ada', first_name: 'Ada' })
  await openPerson(
    organization,
    'ada',
    async page => {
      await button(page, 'Edit: Profile').click()
      await page.getByLabel('Last name').fill('Lovelace')
      await page.route('**/v1/people/**', route =>
        route.request().method() === 'PATCH'
          ? route.fulfill({
              status: 503,
              contentType: 'application/json',
              body: '{"error":"operation_failed","errorstack":null,"message":"The service is overloaded.","details":[],"request_id":"r"}',
            })
          : route.continue(),
      )
      await button(page, 'Save').click()
      await page.getByRole('alert').getByText('The service cannot answer at the moment.').waitFor()
      await page.unroute('**/v1/people/**')
      await page.route('**/v1/people/**', route => route.abort())
      await button(page, 'Save').click()
      await page.getByRole('alert').getByText('The service cannot be reached.').waitFor()
      expect(await page.getByLabel('Last name').inputValue()).toBe('Lovelace')
      await page.unroute('**/v1/people/**')
      await button(page, 'Save').click()
      await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
    },
    { expectedErrors: /503|ERR_FAILED/ },
  )
  expect((await people.get('ada')).last_name).toBe('Lovelace')
})

it('a person is edited and saved by the keyboard alone', async () => {
  const organization = await service.organization()
  const { people } = organization.client
  await people.create({ external_id: 'ada', first_name: 'Ada' })
  await openPerson(organization, 'ada', async page => {
    const edit = button(page, 'Edit: Profile')
    await edit.waitFor()
    const isOnEdit = () => edit.evaluate(element => element.matches(':focus'))
    for (let steps = 0; steps < 40 && !(await isOnEdit()); steps++) await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    // The first field has the focus, and Enter saves.
    await page.keyboard.press('End')
    await page.keyboard.type(' Augusta')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Ada Augusta' }).waitFor()
  })
  expect((await people.get('ada')).first_name).toBe('Ada Augusta')
})

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
        const dossier = await downloaded(page, () => dialog(page).getByRole('button', { name: 'Download' }).click())
        const lines = dossier
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

describe('axe finds nothing', () => {
  for (const [colorScheme, width] of [
    ['light', 1280],
    ['dark', 360],
  ] as const)
    it(`in ${colorScheme} at ${width} pixels, on the page, in its forms and in its dialogs`, async () => {
      const organization = await service.organization()
      const { people, schema } = organization.client
      await schema.attributes.create({ owner: 'people', key: 'referrer', type: 'person' })
      await schema.attributes.create({ owner: 'people', key: 'tags', type: 'text', cardinality: 'many' })
      const consents = [{ consent_type_id: 1, channel: 'email', state: false, method: 'phone' }] as const
      await people.create({
        external_id: 'ada',
        first_name: 'Ada',
        consents: [...consents],
        attribute_values: { tags: ['a'], nick: 'x', referrer: 'bob' },
      })
      await people.create({ external_id: 'ada-2', first_name: 'Ada', email: 'ada@example.com' })
      await indexWords()
      const faults: string[] = []
      const check = async (page: Page, place: string) => {
        // React Aria announces a pending button by its id for seven seconds, also when the button is gone by then.
        const announced = page.locator('[data-live-announcer] [role=img]')
        await expect.poll(() => announced.count(), { timeout: 30_000 }).toBe(0)
        faults.push(...(await accessibilityFaults(page)).map(fault => `${place}: ${fault}`))
      }
      await openPerson(
        organization,
        'ada',
        async page => {
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
        },
        { context: { colorScheme, viewport: { width, height: 800 } } },
      )
      expect(faults).toEqual([])
    })
})
