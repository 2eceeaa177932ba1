import { expect, it } from 'vitest'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { section } from '../../test/support/console-person.ts'

const { service, openPerson } = useConsole()

it('a support agent learns that a person is a placeholder, and completes it', async () => {
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

it('a support agent cannot bring back a link to somebody who is gone, and is told so', async () => {
  const organization = await service.organization()
  const { people, schema } = organization.client
  await schema.attributes.create({ owner: 'people', key: 'referrer', type: 'person' })
  await people.create({ external_id: 'charles' })
  await people.create({ external_id: 'ada', attribute_values: { referrer: 'charles' } })
  await people.patch('ada', { attribute_values: { referrer: null } })
  await people.delete('charles')
  await openPerson(
    organization,
    'ada',
    async page => {
      await button(page, 'Undo the change of version 2').click()
      await button(page, 'Set these values').click()
      await dialog(page).getByRole('alert').getByText('/attribute_values/referrer', { exact: true }).waitFor()
    },
    { expectedErrors: /400/ },
  )
  expect((await people.get('ada')).version).toBe(2)
  await expect(people.get('charles')).rejects.toMatchObject({ status: 404 })
})

it('a link to nobody is refused at its field, unless a placeholder is allowed', async () => {
  const organization = await service.organization()
  const { people, schema } = organization.client
  await schema.attributes.create({ owner: 'people', key: 'referrer', type: 'person' })
  await people.create({ external_id: 'ada' })
  await openPerson(
    organization,
    'ada',
    async page => {
      await button(page, 'Edit: Attributes').click()
      await page.getByLabel('referrer').fill('charles')
      await button(page, 'Save').click()
      await expect.poll(() => page.getByLabel('referrer').getAttribute('aria-invalid')).toBe('true')
      await expect(people.get('charles')).rejects.toMatchObject({ status: 404 })
      await page.getByText('Create what does not exist yet as a placeholder').click()
      await button(page, 'Save').click()
      await section(page, 'Linked people and records').getByRole('link', { name: 'charles' }).waitFor()
    },
    { expectedErrors: /400/ },
  )
  expect((await people.get('charles')).state).toBe('placeholder')
})
