import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { history, section } from '../../test/support/console-person.ts'
import { overflowOf } from '../../test/support/console-records.ts'
import type { Organization } from '../../test/support/service.ts'

const { service, open, openPerson } = useConsole()

const bounce = { channel: 'email', type: 'hard_bounce', at: '2026-11-01T12:00:00Z', provider: 'ses' } as const
const complaint = { channel: 'email', type: 'complaint', at: '2026-11-02T12:00:00Z', provider: 'postmark' } as const

const addressesOn = (page: Page) => page.getByRole('rowheader').allInnerTexts()
const suppressedIn = async ({ client }: Organization) =>
  (await client.deliverability.suppressed()).items.map(({ address }) => address)

describe.each([
  { device: 'a desktop', viewport: { width: 1280, height: 720 } },
  { device: 'a telephone', viewport: { width: 360, height: 740 } },
])('on $device', ({ viewport }) => {
  it('a marketer finds suppressed addresses by address and reason, and lifts them; a complaint asks again', async () => {
    const organization = await service.organization()
    const { deliverability, people } = organization.client
    await people.create({ external_id: 'ada', email: 'ada@example.com', email_consent: true })
    await deliverability.record([
      { ...bounce, address: 'ada@example.com' },
      { ...complaint, address: 'grace@example.org' },
      ...['01', '02', '03'].map(day => ({
        ...{ channel: 'sms', address: '+4917612345678', type: 'soft_bounce', at: `2026-11-${day}T08:00:00Z` },
      })),
    ] as Parameters<typeof deliverability.record>[0])
    await open(
      organization,
      '/deliverability',
      async page => {
        await expect.poll(() => addressesOn(page)).toEqual(['+4917612345678', 'grace@example.org', 'ada@example.com'])
        const row = (address: string) => page.getByRole('row', { name: address })
        expect(await row('ada@').innerText()).toMatch(/Hard bounce\s+1 Nov 2026, .*\s+30 Apr 2027\s+ses/)
        expect(await row('grace').innerText()).toMatch(/Complaint\s+2 Nov 2026, .*\s+somebody lifts it\s+postmark/)
        expect(await overflowOf(page)).toBe(0)
        await page.getByLabel('Part of the address').fill('EXAMPLE')
        await expect.poll(() => addressesOn(page)).toEqual(['grace@example.org', 'ada@example.com'])
        await button(page, /Reason$/).click()
        await page.getByRole('option', { name: 'Hard bounce' }).click()
        await expect.poll(() => addressesOn(page)).toEqual(['ada@example.com'])
        await page.reload()
        await expect.poll(() => addressesOn(page)).toEqual(['ada@example.com'])
        await button(page, 'Lift…: ada@example.com').click()
        const question = page.getByRole('alertdialog')
        await question.getByText(/Messages may go to this address again/).waitFor()
        await question.getByRole('button', { name: 'Lift the suppression' }).click()
        await page.getByText('No suppressed address is found.').waitFor()

        await page.goto(`${service.address}/console/deliverability?reason=complaint`)
        await button(page, 'Lift…: grace@example.org').click()
        const lift = question.getByRole('button', { name: 'Lift the suppression' })
        expect(await lift.isDisabled()).toBe(true)
        await question.getByText('The person has asked for messages again').click()
        await lift.click()
        await question.waitFor({ state: 'detached' })
      },
      { viewport },
    )
    expect(await suppressedIn(organization)).toEqual(['+4917612345678'])
  })

  it('an operator makes a source, copies the address for the provider, sees when it sent events, and removes it', async () => {
    const organization = await service.organization()
    await open(
      organization,
      '/deliverability?tab=sources',
      async page => {
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
        await page.getByText('No sources yet').waitFor()
        await button(page, 'New source').click()
        await dialog(page)
          .getByText(/let your configuration set send/)
          .waitFor()
        await button(page, /Mail provider$/).click()
        await page.getByRole('option', { name: 'Postmark' }).click()
        await page.getByLabel('Key').fill('newsletter')
        await page.getByLabel(/User and password/).fill('kith')
        await button(page, 'Create').click()
        await dialog(page).getByText('must have a colon between the user and the password').waitFor()
        await page.getByLabel(/User and password/).fill('kith:secret')
        await button(page, 'Create').click()
        const source = page.getByRole('listitem').filter({ hasText: 'newsletter · Postmark' })
        await source.getByText(/In Postmark: your server/).waitFor()
        await source.getByText('never').waitFor()
        const address = await source.getByRole('textbox', { name: 'Address to paste at the provider' }).inputValue()
        await button(page, 'Copy: Address to paste at the provider').click()
        await button(page, 'Copied: Address to paste at the provider').waitFor()
        expect(await page.evaluate('navigator.clipboard.readText()')).toBe(address)
        const headers = { 'Content-Type': 'application/json', Authorization: `Basic ${btoa('kith:secret')}` }
        const body = JSON.stringify({ RecordType: 'Open', Recipient: 'ada@example.com' })
        expect((await fetch(address, { method: 'POST', headers, body })).status).toBe(200)
        await page.reload()
        await expect.poll(() => source.innerText()).toMatch(/Last events\s+\d.* 20\d\d.*\s+Ignored events.*\s+1\s/)
        expect(await overflowOf(page)).toBe(0)
        await button(page, 'Remove…: newsletter').click()
        await page.getByRole('alertdialog').getByRole('button', { name: 'Remove the source' }).click()
        await page.getByText('No sources yet').waitFor()
      },
      { viewport, expectedErrors: /400/ },
    )
    expect((await organization.client.deliverability.sources()).items).toEqual([])
  })

  it('the page of a person says what holds for the mailbox beside the answers: its suppression, refusals of others, the hold', async () => {
    const organization = await service.organization()
    const { people, deliverability, holds } = organization.client
    await people.create({ external_id: 'ada', first_name: 'Ada', email: 'home@example.com', email_consent: true })
    await people.create({ external_id: 'bob', email: 'home@example.com', email_consent: false })
    await deliverability.record([{ ...bounce, address: 'home@example.com', reference: 'message-7' }])
    await holds.set('ada', { reason: 'Case 2026-17' })
    await openPerson(
      organization,
      'ada',
      async page => {
        await page.getByText('This person is under a legal hold.').waitFor()
        await button(page, /^Marketing, Email: Granted.*refused for this address/s).waitFor()
        const addresses = section(page, 'Deliverability')
        await addresses.getByText('Email: home@example.com').waitFor()
        expect(await addresses.innerText()).toMatch(
          /Suppressed\s+Reason\s+Hard bounce\s+Since\s+1 Nov 2026[\s\S]*Until\s+30 Apr 2027[\s\S]*Reported by\s+ses\s+Reference\s+message-7/,
        )
        await button(page, /^Marketing, Email/).click()
        const reasons = () => dialog(page).getByRole('status').getByRole('listitem').allInnerTexts()
        await expect
          .poll(reasons)
          .toEqual([
            expect.stringMatching(
              /^Messages to this address are suppressed since 1 Nov 2026.*: Hard bounce, reported by ses\. It ends on 30 Apr 2027/,
            ),
            expect.stringMatching(/^Somebody refused for this email address/),
          ])
        await button(page, 'Close').click()
        await addresses.getByRole('button', { name: 'Lift…: home@example.com' }).click()
        await button(page, 'Lift the suppression').click()
        await addresses.getByText('Deliverable', { exact: true }).waitFor()
        await addresses.getByText('Suppression lifted').waitFor()
        const change = (index: number) => history(page).nth(index).innerText()
        await expect
          .poll(() => change(0))
          .toMatch(/Deliverability · Email\s+before:\s+Suppressed\s+after:\s+Deliverable\s/)
        expect(await change(1)).toMatch(/before:\s+Deliverable\s+after:\s+Suppressed · Hard bounce/)
        // No write sets what providers told.
        expect(await history(page).getByRole('button', { name: /^Undo/ }).count()).toBe(0)
        expect(await overflowOf(page)).toBe(0)
      },
      { viewport },
    )
    expect(await suppressedIn(organization)).toEqual([])
  })

  it('a marketer records the signal of a browser with its consent string', async () => {
    const organization = await service.organization()
    const { people, consents } = organization.client
    await people.create({ external_id: 'ada', email: 'ada@example.com' })
    const consent_string = `DBABMA~${'C'.repeat(2_000)}`
    await openPerson(
      organization,
      'ada',
      async page => {
        await button(page, /^Marketing, Email/).click()
        await button(page, 'Record an answer').click()
        await button(page, /Answer$/).click()
        await page.getByRole('option', { name: 'Refused' }).click()
        await button(page, /How$/).click()
        await page.getByRole('option', { name: 'Signal of the browser (GPC)' }).click()
        await page.getByLabel('Consent string').fill('x'.repeat(8_193))
        await button(page, 'Record the answer').click()
        await page.getByText(/at most 8192 /).waitFor()
        await page.getByLabel('Consent string').fill(consent_string)
        await button(page, 'Record the answer').click()
        // The text of the field itself would be found too, before the answer is recorded.
        await page.getByLabel('Consent string').waitFor({ state: 'detached' })
        await dialog(page).getByText('DBABMA~').first().waitFor()
      },
      { viewport, expectedErrors: /400/ },
    )
    const [recorded] = (await consents.history('ada').page()).items
    expect(recorded).toMatchObject({ state: false, method: 'gpc', consent_string })
  })

  it('a marketer lists the people whose email address is suppressed, and reads the condition again', async () => {
    const organization = await service.organization()
    const { people, deliverability } = organization.client
    for (const name of ['ada', 'grace'])
      await people.create({ external_id: name, first_name: name, email: `${name}@example.com` })
    await deliverability.record([{ ...bounce, address: 'ada@example.com' }])
    await open(
      organization,
      '/people',
      async page => {
        await button(page, 'Filter').click()
        await page.getByRole('combobox', { name: 'Field' }).fill('Deliver')
        await page.getByRole('option', { name: 'Deliverability' }).click()
        await page.getByText('This filter matches 1 person').waitFor()
        await button(page, 'Apply').click()
        await page.getByRole('link', { name: 'ada' }).waitFor()
        await page.getByRole('link', { name: 'grace' }).waitFor({ state: 'detached' })
        await page.reload()
        await button(page, /^Filter/).click()
        await button(page, /the email address/).waitFor()
        await button(page, /is suppressed/).click()
        await page.getByRole('option', { name: 'is deliverable' }).click()
        await button(page, 'Apply').click()
        await page.getByRole('link', { name: 'grace' }).waitFor()
        expect(new URL(page.url()).searchParams.get('filter')).toBe(
          '{"deliverability":{"$some":{"channel":"email","state":"deliverable"}}}',
        )
      },
      { viewport },
    )
  })
})

it('a session that may only read sees no button that lifts a suppression or changes the sources', async () => {
  const organization = await service.organization()
  const { deliverability, people } = organization.client
  await people.create({ external_id: 'ada', email: 'ada@example.com' })
  await deliverability.record([{ ...bounce, address: 'ada@example.com' }])
  await deliverability.addSource({ key: 'news', provider: 'postmark' })
  await open(
    organization,
    '/deliverability',
    async page => {
      await page.getByRole('row', { name: /ada@example.com/ }).waitFor()
      expect(await button(page, /^Lift/).count()).toBe(0)
      await page.getByRole('tab', { name: 'Sources' }).click()
      await page.getByText('news · Postmark').waitFor()
      expect(await button(page, /source|^Remove/).count()).toBe(0)
      await page.goto(`${service.address}/console/people/ada`)
      await section(page, 'Deliverability').getByText('ada@example.com').waitFor()
      expect(await button(page, /^Lift/).count()).toBe(0)
    },
    { scope: 'people:read webhooks:read' },
  )
})

it.each([
  ['de-DE', 'Zustellbarkeit', 'Gesperrte Adressen', 'Beschwerde', 'In Mailgun: Send'],
  ['it-IT', 'Recapitabilità', 'Indirizzi sospesi', 'Reclamo', 'In Mailgun: Send'],
])('the page speaks the language of the browser: %s', async (locale, title, list, reason, where) => {
  const organization = await service.organization()
  const { deliverability } = organization.client
  await deliverability.record([{ ...complaint, address: 'ada@example.com' }])
  await deliverability.addSource({ key: 'news', provider: 'mailgun', secret: 'key-1' })
  await open(
    organization,
    '/deliverability',
    async page => {
      await page.getByRole('heading', { name: title }).waitFor()
      await page.getByRole('tab', { name: list }).waitFor()
      await page.getByRole('row', { name: reason }).waitFor()
      await page.goto(`${service.address}/console/deliverability?tab=sources`)
      await page.getByText(where).waitFor()
    },
    { locale },
  )
})
