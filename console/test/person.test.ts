import { expect, it } from 'vitest'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { choose, history } from '../../test/support/console-person.ts'

const { service, openPerson } = useConsole()

it('a support agent sees who changed the address, when, and what it was, and takes the change back', async () => {
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

it('a support agent sees the person as of a moment, plainly marked and read only, and restores a version', async () => {
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
  expect(await people.get({ id })).toMatchObject({ last_name: 'Byron', attribute_values: {}, version: 3 })
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

it('a support agent deletes a person and brings the person back, by the last name too', async () => {
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
      await expect(people.get({ id })).rejects.toMatchObject({ status: 404 })
      await page.goto(`${service.address}/console/people/ada`)
      await page.getByRole('heading', { name: 'Ada Lovelace was deleted' }).waitFor()
      await button(page, 'Restore the person').click()
      await page.getByRole('heading', { name: 'Ada Lovelace', exact: true }).waitFor()
      await expect.poll(() => history(page).first().innerText()).toContain('restored')
      expect(new URL(page.url()).pathname).toBe('/console/people/ada')
    },
    { expectedErrors: /404/ },
  )
  expect(await people.get({ id })).toMatchObject({ external_id: 'ada', version: 3 })
})

it('a support agent edits attributes by their types, and values under keys that nobody declared as JSON', async () => {
  const organization = await service.organization()
  const { people, schema } = organization.client
  await schema.attributes.create({ owner: 'people', key: 'age', type: 'number', minimum: 0 })
  await schema.attributes.create({ owner: 'people', key: 'tags', type: 'text', cardinality: 'many' })
  await schema.attributes.create({ owner: 'people', key: 'level', type: 'text', enum: ['gold', 'silver'] })
  const early = { joined: 'in spring', seen_at: 'never' }
  await people.create({ external_id: 'ada', attribute_values: { tags: ['vip'], note: { a: 1 }, ...early } })
  // The page shows values that were stored before the attribute was declared as they are.
  await schema.attributes.create({ owner: 'people', key: 'joined', type: 'date' })
  await schema.attributes.create({ owner: 'people', key: 'seen_at', type: 'datetime' })
  await openPerson(
    organization,
    'ada',
    async page => {
      await page.getByRole('region', { name: 'Attributes' }).getByText('in spring').waitFor()
      await page.getByRole('region', { name: 'Attributes' }).getByText('never').waitFor()
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
    ...early,
  })
})

it('two people who edit one field: the second sees both values and what was, chooses, and loses nothing', async () => {
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
      await page.getByText(/^tests wrote last, on/).waitFor()
      // Only the first name here and the language there differ: these two need no choice.
      const choices = page.getByRole('group').filter({ has: page.getByRole('radio') })
      expect(await page.getByRole('form', { name: 'Profile' }).locator(choices).count()).toBe(1)
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

it('a person gets a first value where no attribute is declared', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  await openPerson(organization, 'ada', async page => {
    await button(page, 'Edit: Attributes').click()
    await page.getByLabel('Add a value under a new key').fill('city')
    await button(page, 'Add').click()
    await page.getByLabel('city').fill('"Rome"')
    await button(page, 'Save').click()
    await button(page, 'Edit: Attributes').waitFor()
  })
  expect((await organization.client.people.get('ada')).attribute_values).toEqual({ city: 'Rome' })
})
