import { beforeAll, expect, it } from 'vitest'
import { jobsFollower } from '../../src/jobs/run-jobs.ts'
import { defaultLimits } from '../../src/process/config.ts'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { countIs, createPeople } from '../../test/support/console-people.ts'
import { follow } from '../../test/support/followers.ts'
import type { Organization } from '../../test/support/service.ts'
import { names } from '../../test/support/writes.ts'

const { service, open } = useConsole()
const work = () =>
  follow(service.db, [jobsFollower({ originName: 'kith.test', limits: defaultLimits, pausePerWork: 0 })])

let shop: Organization
beforeAll(async () => {
  shop = await service.organization()
  await createPeople(
    shop,
    names('p', 60).map(external_id => ({ external_id, last_name: external_id })),
  )
})

const count = async (filter: object) => (await shop.client.people.count(filter)).count

it('chooses rows by the keyboard, sets a field of them after a preview, and undoes it', async () => {
  await open(shop, '/people', async page => {
    await countIs(page, '60 people')
    const rows = page.getByRole('table').getByRole('checkbox')
    await rows.nth(1).focus()
    await page.keyboard.press('Space')
    await page.keyboard.press('Shift+ArrowDown')
    await page.keyboard.press('Shift+ArrowDown')
    await page.getByText('3 chosen').waitFor()
    await button(page, 'Set or empty a field…').press('Enter')
    await dialog(page).getByRole('button', { name: /Field/ }).click()
    await page.getByRole('option', { name: 'Language' }).click()
    await dialog(page).getByRole('textbox', { name: 'Language' }).fill('eo')
    await page.keyboard.press('Enter')
    await dialog(page).getByText('3 entries would change').waitFor()
    expect(await count({ language: 'eo' })).toBe(0)
    // The way back leads to what was typed.
    await button(page, 'Back').click()
    expect(await dialog(page).getByRole('textbox', { name: 'Language' }).inputValue()).toBe('eo')
    await dialog(page).getByRole('textbox', { name: 'Language' }).press('Enter')
    await button(page, 'Change 3 entries').click()
    await dialog(page).getByText('It goes on if you close this window.').waitFor()
    await work()
    await dialog(page).getByText('3 changed').waitFor()
    expect(await count({ language: 'eo' })).toBe(3)
    await button(page, 'Undo').click()
    await dialog(page).getByText('Undone: 3 entries').waitFor()
    expect(await count({ language: 'eo' })).toBe(0)
  })
})

it('deletes all that match, also those that are not loaded, and none of them before the second yes', async () => {
  await open(shop, '/people', async page => {
    await countIs(page, '60 people')
    const [, , second] = await page.getByRole('table').getByRole('row').all()
    await page.getByRole('table').getByRole('checkbox').nth(1).click()
    await second!.getByRole('checkbox').click({ modifiers: ['Shift'] })
    await page.getByText('2 chosen').waitFor()
    await button(page, 'Choose all 60 that match').click()
    await page.getByText('60 chosen').waitFor()
    await button(page, 'Delete…').click()
    const asked = page.getByRole('alertdialog')
    await asked.getByText('60 entries would change').waitFor()
    expect(await count({})).toBe(60)
    await button(page, 'Delete 60 entries').click()
    await asked.getByText('It goes on if you close this window.').waitFor()
    await work()
    await asked.getByText('60 changed').waitFor()
    expect(await count({})).toBe(0)
  })
})

it('lists what was changed for several at once, with who, when and what came of it, and undoes it there', async () => {
  const shop = await service.organization()
  await createPeople(shop, [{ external_id: 'ada' }, { external_id: 'bob', email: 'bob@example.com' }])
  await open(shop, '/jobs', async page => {
    await page.getByText('Nothing was changed yet for several at once').waitFor()
  })
  await shop.client.people.bulk({ filter: {}, change: { op: 'patch', body: { language: 'eo' } } })
  await shop.client.holds.set('ada', { reason: 'Case 7' })
  await shop.client.people.bulk({
    filter: { external_id: 'ada' },
    change: { op: 'erase', reason: 'Request of 12 May' },
  })
  await work()
  await open(shop, '/people', async page => {
    await page.getByRole('table').getByRole('checkbox').nth(1).click()
    await page.getByRole('link', { name: 'Earlier changes' }).click()
    const [newest, first] = [1, 2].map(index => page.getByRole('row').nth(index))
    await expect.poll(() => first!.innerText()).toMatch(/Fields or consents\s+People\s.*\s+tests\s+2 \/ 2\s+0\s+Done/)
    await expect.poll(() => newest!.innerText()).toMatch(/Erasure\s[\s\S]*\s0 \/ 1\s+1\s/)
    await newest!.getByRole('button', { name: /^Open the change of/ }).click()
    await dialog(page).getByRole('table', { name: 'Refused' }).waitFor()
    await dialog(page).getByRole('button', { name: 'Close' }).click()
    await first!.getByRole('button', { name: /^Open the change of/ }).click()
    await dialog(page).getByText('2 changed').waitFor()
    await button(page, 'Undo').click()
    await dialog(page)
      .getByText(/^Undone on/)
      .waitFor()
    await dialog(page).getByRole('button', { name: 'Close' }).click()
    await expect.poll(() => first!.innerText()).toMatch(/Undone on/)
    expect((await shop.client.people.count({ language: 'eo' })).count).toBe(0)
  })
})
