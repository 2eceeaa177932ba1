import { expect, it } from 'vitest'
import { button, useConsole } from '../../test/support/console.ts'
import { chooseFile, storedPeople } from '../../test/support/console-import.ts'
import { countIs, createPeople, indexWords } from '../../test/support/console-people.ts'
import { history, section } from '../../test/support/console-person.ts'
import { createOrders, overflowOf, title } from '../../test/support/console-records.ts'

const { service, open, openPerson } = useConsole()

const image = '<img src=x onerror="document.title=\'owned\'">'
const rightToLeft = '\u202eevil\u202c عمر'

it('are text in the list of people, which keeps its form', async () => {
  const target = await service.organization()
  await target.client.schema.attributes.create({ key: 'note', owner: 'people', type: 'text' })
  const note = 'x'.repeat(65_000)
  await createPeople(target, [
    { external_id: 'image', first_name: image, last_name: '"; alert(1) //', attribute_values: { note: image } },
    { external_id: 'rtl', first_name: rightToLeft, attribute_values: { note: rightToLeft } },
    { external_id: 'long', first_name: 'L'.repeat(255), attribute_values: { note } },
  ])
  await indexWords(service)
  const path = `/people?columns=${encodeURIComponent('external_id,attribute_values.note')}`
  await open(target, path, async page => {
    await countIs(page, '3 people')
    await page.getByRole('link', { name: `${image} "; alert(1) //` }).waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(await page.title()).toBe('People · kith')
    const overflow = () => page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    expect(await overflow()).toBeLessThanOrEqual(0)
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await overflow()).toBeLessThanOrEqual(0)
    // A hostile address is no order and no column.
    await page.goto(`${service.address}/console/people?sort=%3Cscript%3E&columns=%3Cimg%3E&text=7`)
    await page.getByText('Nobody is found for').waitFor()
  })
})

it('are text on the page of a person, of any length and direction, and the page keeps its width', async () => {
  const organization = await service.organization()
  const { people } = organization.client
  const script = '<img src=x onerror="document.title=\'broken\'">'
  const external_id = 'a/b?c#d%2e "é'
  await people.create({
    external_id,
    first_name: script,
    last_name: '\u202Eevil \u05d0\u05d1',
    attribute_values: {
      [script]: script,
      long: 'x'.repeat(60_000),
      link: 'javascript:alert(1)',
      '__proto__ ': [script],
    },
  })
  await people.patch(external_id, { first_name: `${script}2`, attribute_values: { long: null } })
  for (const width of [360, 1280])
    await openPerson(
      organization,
      encodeURIComponent(external_id),
      async page => {
        await section(page, 'Attributes').getByText(script).first().waitFor()
        await expect.poll(() => history(page).count()).toBe(2)
        await history(page).first().getByRole('button', { name: 'Show all of it' }).click()
        expect(await page.locator('img[src="x"], main script, a[href^="javascript"]').count()).toBe(0)
        expect(await page.title()).toContain('<img src=x')
        const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth')
        expect([width, overflow <= 0]).toEqual([width, true])
      },
      { viewport: { width, height: 800 } },
    )
})

it('are text in identifiers, keys and values of a record, whose page keeps its layout', async () => {
  const organization = await createOrders(service)
  const { client } = organization
  const hostile = '<img src=x onerror=alert(1)>\u202Egnp.exe'
  // An identifier with an invisible character is refused.
  const external_id = '<img src=x onerror=alert(1)>'
  const long = 'x'.repeat(65_000)
  const { record_id } = await client.stack('orders').create({
    external_id,
    attribute_values: { [hostile]: hostile, [`${'k'.repeat(100)}`]: long, script: { '</script><b>': [null, hostile] } },
  })
  await open(organization, '/records/orders', async page => {
    await page.getByRole('link', { name: '<img src=x' }).click()
    await title(page, '<img src=x').waitFor()
    await page.getByRole('definition').getByText('<img src=x').first().waitFor()
    await button(page, 'Edit: Values').click()
    expect(JSON.parse(await page.getByLabel('script').inputValue())).toEqual({ '</script><b>': [null, hostile] })
    await page.getByLabel('script').fill('{"a": ')
    await button(page, 'Save').click()
    await page.getByText(/^This is not JSON/).waitFor()
    await page.getByLabel('script').fill('1')
    await page.getByLabel('Add a value under a new key').fill('a/b~c "d"')
    await button(page, 'Add').click()
    await page.getByLabel('a/b~c "d"').fill('"<i>e</i>"')
    await button(page, 'Save').click()
    await button(page, 'Edit: Values').waitFor()
    await page.getByRole('definition').getByText('<i>e</i>').first().waitFor()
    expect(await page.locator('img[src=x], main b, main i').count()).toBe(0)
    expect(await overflowOf(page)).toBe(0)
  })
  expect((await client.stack('orders').get({ id: record_id })).attribute_values['a/b~c "d"']).toBe('<i>e</i>')
})

it('are text in names and keys of the schema', async () => {
  const organization = await service.organization()
  const { client } = organization
  const hostile = '<img src=x onerror=alert(1)>\u202Egnp.exe'
  await client.schema.stacks.create({ key: 'orders', kind: 'item', name: hostile })
  await client.schema.attributes.create({
    key: 'total',
    owner: 'orders',
    type: 'stack',
    target_stack: 'orders',
    name: hostile,
  })
  await client.schema.consentTypes.patch(1, { name: hostile })
  await client.stack('orders').create({ external_id: 'o-1', attribute_values: { [`${hostile} key`]: 1 } })
  await open(organization, '/schema?owner=orders', async page => {
    await page.getByRole('link', { name: hostile }).first().waitFor()
    for (const tab of ['Consent types', 'Observed keys', 'Picture']) {
      await page.getByRole('tab', { name: tab }).click()
      await page.getByText('<img src=x').first().waitFor()
    }
    expect(await page.locator('img[src=x]').count()).toBe(0)
    expect(await overflowOf(page)).toBe(0)
  })
})

it('are text in a file that is imported: formulas, markup, right-to-left marks, and a cell of 64 KiB', async () => {
  const organization = await service.organization()
  const hostile = ["=cmd|' /C calc'!A0", '<img src=x onerror="document.title=1">', '\u202egnp.exe', 'x'.repeat(65_536)]
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
  const rows = hostile.map((text, index) => `h-${index},${quoted(text)}\r\n`)
  const file = `\ufeffexternal_id,${quoted('<img src=x onerror="document.title=2">')}\r\n${rows.join('')}`
  await open(
    organization,
    '/import',
    async page => {
      await chooseFile(page, '<b>hostile<\u202e.csv', file)
      await page.getByRole('button', { name: 'Import the rest as attributes' }).click()
      await page.getByRole('button', { name: 'Import', exact: true }).waitFor()
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
      expect(await page.locator('img[src=x], b').count()).toBe(0)
      await page.getByRole('button', { name: 'Import', exact: true }).click()
      await page.getByText(/^Imported/).waitFor()
      expect(await page.title()).toBe('Import · kith')
    },
    { viewport: { width: 360, height: 800 } },
  )
  const stored = await storedPeople(organization)
  expect(stored.map(person => Object.values(person.attribute_values as object)[0])).toEqual(hostile)
})
