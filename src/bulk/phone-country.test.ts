import { expect, it } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { useService } from '../../test/support/service.ts'
import { useShop } from '../../test/support/shop.ts'

const service = useService()
const organization = useShop(service)
const path = '/v1/people/import?phone_country=IT'
const get = (name: string) => organization.ok('GET', `/v1/people/${name}`)
const phoneOf = async (name: string) => {
  const { mobile_prefix, mobile_number, mobile_e164 } = await get(name)
  return [mobile_prefix, mobile_number, mobile_e164]
}

it('stores numbers without a prefix with that of the country, for this import only', async () => {
  await organization.ok('PATCH', '/v1/schema/settings', { default_country: 'DE' })
  const lines = [
    { external_id: 'plain', mobile_number: '333 1234567' },
    { external_id: 'own', mobile_prefix: '+44', mobile_number: '7911 123456' },
    { external_id: 'international', mobile_number: '+44 7911 123456' },
    { external_id: 'zeros', mobile_number: '0044 7911 123456' },
    { external_id: 'german', mobile_number: '0171 1000003' },
    { external_id: 'none', first_name: 'Ada' },
    { external_id: 'cleared', mobile_number: null },
  ]
  expect((await importLines(organization, path, linesFrom(lines))).counts).toMatchObject({ created: 7, failed: 0 })
  expect(await phoneOf('plain')).toEqual(['+39', '333 1234567', '+393331234567'])
  expect(await phoneOf('own')).toEqual(['+44', '7911 123456', '+447911123456'])
  expect(await phoneOf('international')).toEqual([null, '+44 7911 123456', '+447911123456'])
  expect(await phoneOf('zeros')).toEqual([null, '0044 7911 123456', '+447911123456'])
  // The number is invalid in this country, and the country of the settings does not apply to it.
  const [prefix, number, e164] = await phoneOf('german')
  expect([prefix, number, e164?.startsWith('+49') ?? false]).toEqual(['+39', '0171 1000003', false])
  expect(await phoneOf('none')).toEqual([null, null, null])
  expect(await phoneOf('cleared')).toEqual([null, null, null])
  await importLines(
    organization,
    '/v1/people/import',
    linesFrom([{ external_id: 'next', mobile_number: '0171 1000003' }]),
  )
  expect(await phoneOf('next')).toEqual([null, '0171 1000003', '+491711000003'])
})

it('reads a number with the national prefix of its country as that country does', async () => {
  const import_ = (country: string, mobile_number: string) =>
    importLines(
      organization,
      `/v1/people/import?phone_country=${country}`,
      linesFrom([{ external_id: country, mobile_number }]),
    )
  for (const [country, number, e164] of [
    ['DE', '0171 1000003', '+491711000003'],
    ['GB', '07911 123456', '+447911123456'],
    ['US', '(202) 555-0147', '+12025550147'],
    ['BS', '(242) 359-1234', '+12423591234'],
    ['IT', '39 3331234', '+39393331234'],
  ] as const) {
    await import_(country, number)
    expect([country, (await phoneOf(country))[2]]).toEqual([country, e164])
  }
})

it('recognizes people by the number in the country, in CSV too, and a check sees what the import sees', async () => {
  await organization.ok('POST', '/v1/people', {
    external_id: 'ada',
    mobile_prefix: '+39',
    mobile_number: '333 1234567',
  })
  const lines = 'mobile_number,first_name\n3331234567,Ada\n'
  const csv = { 'Content-Type': 'text/csv' }
  const matched = `${path}&match=mobile`
  expect((await importLines(organization, `${matched}&dry_run=true`, lines, csv)).counts).toMatchObject({ updated: 1 })
  expect((await importLines(organization, matched, lines, csv)).counts).toMatchObject({ updated: 1, created: 0 })
  expect(await get('ada')).toMatchObject({ first_name: 'Ada', mobile_prefix: '+39', mobile_number: '3331234567' })
})

it('refuses a country that is none, and a country for records', async () => {
  await organization.ok('POST', '/v1/schema/stacks', { key: 'orders', kind: 'item' })
  for (const [address, fault] of [
    ['/v1/people/import?phone_country=ZZ', '/phone_country'],
    ['/v1/people/import?phone_country=it', '/phone_country'],
    ['/v1/people/import?phone_country=', '/phone_country'],
    ['/v1/stacks/orders/import?phone_country=IT', '/phone_country'],
  ]) {
    const { status, body } = await organization.send('POST', address!, linesFrom([{ external_id: 'a' }]), {
      'Content-Type': 'application/x-ndjson',
    })
    expect([address, status, body.details?.[0]?.path]).toEqual([address, 400, fault])
  }
  expect((await organization.ok('POST', '/v1/people/list', {})).items).toEqual([])
})
