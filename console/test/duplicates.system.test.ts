import { describe, expect, it } from 'vitest'
import { checkAccessibility } from '../../test/support/accessibility.ts'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { overflowOf } from '../../test/support/console-records.ts'

const { service, open, openPerson } = useConsole()

async function twins() {
  const organization = await service.organization()
  const { people } = organization.client
  await people.create({ external_id: 'ada', first_name: 'Ada', last_name: 'Byron', email: 'ada@example.com' })
  await people.create({ external_id: 'shopper', first_name: 'Ada', last_name: 'Lovelace', email: 'Ada@example.com' })
  return organization
}

describe.each([
  { device: 'a desktop', viewport: { width: 1440, height: 900 } },
  { device: 'a telephone', viewport: { width: 390, height: 844 } },
])('on $device', ({ viewport }) => {
  it('people who may be one are set aside and back, and merged with the values that are chosen', async () => {
    const organization = await twins()
    const { people } = organization.client
    await open(
      organization,
      '/duplicates',
      async page => {
        await page.getByRole('heading', { name: 'Same email: ada@example.com' }).waitFor()
        expect((await checkAccessibility(page)).violations).toEqual([])
        expect(await overflowOf(page)).toBe(0)
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/list-${viewport.width}.png` })
        await button(page, 'Not the same: Same email: ada@example.com').click()
        await page.getByText('No duplicates', { exact: true }).waitFor()
        await page.getByRole('rowheader', { name: 'Ada Byron' }).waitFor()
        await button(page, 'Undo: Ada Byron, Ada Lovelace').click()
        await button(page, 'Compare and merge: Same email: ada@example.com').click()
        // By the keyboard alone: the arrow keys move between the two values.
        await dialog(page).getByRole('radio', { name: 'Last name: This person stays' }).focus()
        await page.keyboard.press('ArrowRight')
        await expect.poll(() => dialog(page).getByRole('row', { name: 'Last name' }).innerText()).toMatch(/Lovelace$/)
        await dialog(page).getByRole('radio', { name: 'Identifier: Is merged into this one' }).check()
        await expect.poll(() => dialog(page).innerText()).toContain('lead to this person: ada.')
        expect((await checkAccessibility(page)).violations).toEqual([])
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/merge-${viewport.width}.png` })
        await dialog(page).getByRole('button', { name: 'Merge', exact: true }).click()
        await page.getByText('Ada Lovelace was merged into Ada Lovelace.').waitFor()
        expect(await people.get('ada')).toMatchObject({ external_id: 'shopper', last_name: 'Lovelace' })
        await button(page, 'Undo the merge').click()
        await page.getByText('The merge was undone.').waitFor()
        expect((await people.get('ada')).last_name).toBe('Byron')
        await page.getByRole('heading', { name: 'Same email: ada@example.com' }).waitFor()
      },
      { viewport },
    )
  })
})

it('a merge proposes the people who may be the same', async () => {
  await openPerson(await twins(), 'ada', async page => {
    await button(page, 'More').click()
    await page.getByRole('menuitem', { name: 'Merge…' }).click()
    await dialog(page)
      .getByRole('button', { name: /Ada Lovelace.*Same email/s })
      .click()
    await dialog(page).getByRole('row', { name: 'Last name' }).waitFor()
  })
})

it('a new person and an edit are warned of people who have the email or phone already', async () => {
  const organization = await twins()
  await organization.client.people.create({ external_id: 'phone', first_name: 'Eve', mobile_number: '+39 333 1234567' })
  await open(organization, '/people', async page => {
    await button(page, 'New person').click()
    await dialog(page).getByLabel('Email').fill('ADA@example.com')
    await dialog(page).getByRole('link', { name: 'Ada Lovelace' }).waitFor()
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/new.png` })
    await dialog(page).getByLabel('Email').fill('new@example.com')
    await dialog(page).getByRole('link', { name: 'Ada Lovelace' }).waitFor({ state: 'detached' })
    expect((await checkAccessibility(page)).violations).toEqual([])
  })
  await openPerson(organization, 'phone', async page => {
    await button(page, 'Edit: Profile').click()
    await page.getByLabel('Email').fill('ada@example.com')
    await page.getByRole('link', { name: 'Ada Byron' }).waitFor()
    await page.getByLabel('Email').fill('')
    await page.getByRole('link', { name: 'Ada Byron' }).waitFor({ state: 'detached' })
    await button(page, 'Cancel').click()
  })
})
