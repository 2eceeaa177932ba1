import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { button, dialog, useConsole } from '../../test/support/console.ts'
import { createOrders, storedValue } from '../../test/support/console-records.ts'

const { service, open, openPerson } = useConsole()

it('two people who edit different fields: both are kept without a question', async () => {
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

it('two people who record answers to one question: the second sees the other answer first, and the evidence stays in the form', async () => {
  const organization = await service.organization()
  const { people, consents } = organization.client
  await people.create({ external_id: 'ada', email: 'ada@example.com' })
  await openPerson(
    organization,
    'ada',
    async page => {
      await button(page, /^Marketing, Email: No answer/).click()
      await button(page, 'Record an answer').click()
      await dialog(page)
        .getByRole('button', { name: /Answer$/ })
        .click()
      await page.getByRole('option', { name: 'Granted' }).click()
      await page.getByLabel('Where').fill('shop counter')
      await people.patch('ada', { consents: [{ consent_type_id: 1, channel: 'email', state: false }] })
      await button(page, 'Record the answer').click()
      await dialog(page).getByText('Somebody recorded another answer in the meantime').waitFor()
      expect((await consents.history('ada').page()).items).toHaveLength(1)
      expect(await page.getByLabel('Where').inputValue()).toBe('shop counter')
      await button(page, 'Record the answer').click()
      await expect.poll(() => dialog(page).getByText('shop counter').count()).toBe(1)
    },
    { expectedErrors: /412/ },
  )
  const { items } = await consents.history('ada').page()
  expect(items.map(({ state, source }) => [state, source])).toEqual([
    [true, 'shop counter'],
    [false, null],
  ])
})

it('a new identifier leaves what is typed in another section of the page', async () => {
  const organization = await service.organization()
  const { client, send } = organization
  await send('POST', '/v1/schema/attributes', { owner: 'people', key: 'city', type: 'text' })
  await client.people.create({ external_id: 'ada', first_name: 'Ada' })
  await openPerson(
    organization,
    'ada',
    async page => {
      await button(page, 'Edit: Attributes').click()
      await page.getByLabel('city').fill('Rome')
      await button(page, 'Edit: Profile').click()
      await page.getByLabel('Identifier', { exact: true }).fill('ada-2')
      await page.getByRole('form', { name: 'Profile' }).getByRole('button', { name: 'Save' }).click()
      await page.waitForURL(/ada-2/)
      await button(page, 'Edit: Profile').waitFor()
      await button(page, 'Save').click()
      await button(page, 'Edit: Attributes').waitFor()
    },
    { expectedErrors: /412/ },
  )
  expect((await client.people.get('ada-2')).attribute_values).toEqual({ city: 'Rome' })
})

it('two people who edit one value see both, and a change of another value is no conflict', async () => {
  const organization = await createOrders(service)
  const orders = organization.client.stack('orders')
  const { record_id } = await orders.get('o-1')
  const work = async (page: Page) => {
    await button(page, 'Edit: Values').click()
    await page.getByLabel('Total').fill('11')
    await orders.patch('o-1', { attribute_values: { state: 'paid' } })
    await button(page, 'Save').click()
    await button(page, 'Edit: Values').waitFor()
    expect((await orders.get('o-1')).attribute_values).toMatchObject({ total: 11, state: 'paid' })
    await button(page, 'Edit: Values').click()
    await page.getByLabel('Total').fill('12')
    await orders.patch('o-1', { attribute_values: { total: 99 } })
    await button(page, 'Save').click()
    await page.getByText(/^tests wrote last, on/).waitFor()
    const conflict = page.getByRole('group', { name: 'Total' })
    expect((await conflict.innerText()).split(/\s*\n\s*/)).toEqual([
      ...['Total', 'When you began', '11', 'Theirs', '99', 'Yours', '12'],
    ])
    expect(await storedValue(organization, 'o-1', 'total')).toBe(99)
    expect(await button(page, 'Save').isDisabled()).toBe(true)
    // The choice has the focus, so that the keyboard alone decides, too.
    expect(await conflict.getByRole('radio', { name: /Theirs/ }).evaluate(element => element.matches(':focus'))).toBe(
      true,
    )
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await button(page, 'Edit: Values').waitFor()
  }
  await open(organization, `/records/orders/${record_id}`, work, { expectedErrors: /412/ })
  expect(await storedValue(organization, 'o-1', 'total')).toBe(12)
})
