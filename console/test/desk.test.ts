import { expect, it } from 'vitest'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { followSegments } from '../../test/support/segments.ts'

const { service, open, openPerson } = useConsole()

it('a support agent copies the link by which a waiting answer is confirmed', async () => {
  const organization = await service.organization()
  const { people, schema } = organization.client
  const { id } = await schema.consentTypes.create({
    key: 'news',
    name: 'News',
    channels: [{ channel: 'email', double_opt_in: true }],
  })
  const answer = { consent_type_id: id, channel: 'email', state: true } as const
  await people.create({ external_id: 'ada', email: 'ada@example.com', consents: [answer] })
  await openPerson(organization, 'ada', async page => {
    await button(page, /^News, Email: Waiting/).click()
    const field = dialog(page).getByRole('textbox', { name: 'Link that confirms the answer' })
    await expect.poll(() => field.inputValue()).toMatch(/^http.*\/c\//)
  })
})

it('an officer previews the people who are in no segment of use, and the rule for them is off', async () => {
  const organization = await service.organization()
  const { people, segments, retentionRules } = organization.client
  await people.batch([
    { op: 'create', body: { external_id: 'buyer', first_name: 'Bea' } },
    { op: 'create', body: { external_id: 'gone', first_name: 'Gus' } },
  ])
  await segments.create({ key: 'buyers', filter: { first_name: 'Bea' } })
  await open(organization, '/lifetimes', async page => {
    await button(page, 'People out of use…').click()
    await page.getByRole('checkbox', { name: 'buyers' }).press('Space')
    await page.getByText('1 person is in none of them now.').waitFor()
    await page.getByRole('textbox', { name: 'Days out of use' }).fill('1')
    await button(page, 'Make it and preview').click()
    await page.waitForURL('**/console/lifetimes/*')
    await followSegments(service)
    await page.getByRole('heading', { name: 'People of today' }).waitFor()
  })
  expect(await retentionRules.list().all()).toMatchObject([{ segment: 'unused', active: false, after_days: 1 }])
})
