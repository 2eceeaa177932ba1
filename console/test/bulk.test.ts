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
