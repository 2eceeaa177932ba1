import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'
import { chooseFile, countOf } from '../../test/support/console-import.ts'

const { service, open } = useConsole()

it('an agent gives a phone with its country, and sees the number that kith reads', async () => {
  const shop = await service.organization()
  await shop.client.schema.patchSettings({ default_country: 'DE' })
  await open(shop, '/people', async page => {
    await page.getByRole('button', { name: 'New person' }).click()
    const phone = page.getByRole('group', { name: 'Phone' })
    const country = phone.getByRole('combobox', { name: 'Country' })
    const number = phone.getByRole('textbox', { name: 'Phone number' })
    await expect.poll(() => country.inputValue()).toBe('Germany (settings)')
    await page.getByRole('textbox', { name: 'Identifier' }).fill('ada')
    await number.fill('0171 1000003')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('+491711000003', { exact: true }).waitFor()
    expect(await shop.client.people.get('ada')).toMatchObject({ mobile_prefix: null, mobile_number: '0171 1000003' })

    await page.getByRole('button', { name: /Edit/ }).first().click()
    await country.fill('ital')
    await country.press('Enter')
    await number.fill('333 1234567')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('+393331234567', { exact: true }).waitFor()
    expect(await shop.client.people.get('ada')).toMatchObject({ mobile_prefix: '+39', mobile_number: '333 1234567' })

    await page.getByRole('button', { name: /Edit/ }).first().click()
    await expect.poll(() => country.inputValue()).toBe('Italy +39')
    await number.fill('+44 7911 123456')
    await expect.poll(() => country.inputValue()).toBe('United Kingdom +44')
    await number.fill('ask her')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('No international number').waitFor()
  })
})

it('a number that was written with the zero of its country is shown as one dials it', async () => {
  const shop = await service.organization()
  await shop.client.people.batch([
    { op: 'create', body: { external_id: 'trunk', mobile_prefix: '+49', mobile_number: '0171/1000004' } },
    { op: 'create', body: { external_id: 'whole', mobile_prefix: '+39', mobile_number: '06 1234 5678' } },
    { op: 'create', body: { external_id: 'none', mobile_prefix: '+49', mobile_number: 'ask her' } },
  ])
  await open(shop, '/people', async page => {
    for (const phone of ['+491711000004', '+39 06 1234 5678', '+49 ask her'])
      await page.getByRole('cell', { name: phone, exact: true }).waitFor()
    await page.getByRole('link', { name: 'trunk', exact: true }).click()
    await page.getByRole('link', { name: '+491711000004', exact: true }).waitFor()
  })
})

it('an administrator sets the country of phone numbers by its name', async () => {
  const shop = await service.organization()
  await open(shop, '/schema?tab=settings', async page => {
    await page.getByRole('button', { name: /Country of phone numbers/ }).click()
    await page.getByRole('option', { name: 'Austria' }).click()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await expect.poll(async () => (await shop.client.schema.settings()).default_country).toBe('AT')
  })
})

it('a marketer says once that all numbers of a file are of a country, and sees them so before the import', async () => {
  const shop = await service.organization()
  await shop.client.schema.patchSettings({ default_country: 'DE' })
  await open(shop, '/import', async page => {
    await chooseFile(page, 'people.csv', 'external_id,mobile_number\nada,333 1234567\nbob,+44 7911 123456\n')
    const country = page.getByRole('combobox', { name: 'All numbers without a prefix are of' })
    await expect.poll(() => country.inputValue()).toBe('Germany (settings)')
    await country.fill('ital')
    await country.press('Enter')
    await page.getByRole('cell', { name: '+39 333 1234567', exact: true }).waitFor()
    await page.getByRole('cell', { name: '+44 7911 123456', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await expect.poll(() => countOf(page, 'Created').textContent()).toBe('2')
    expect(await shop.client.people.get('ada')).toMatchObject({ mobile_prefix: '+39', mobile_number: '333 1234567' })
    expect(await shop.client.people.get('bob')).toMatchObject({ mobile_prefix: null })
  })
})
