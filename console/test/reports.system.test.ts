import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { button, useConsole } from '../../test/support/console.ts'
import { downloaded } from '../../test/support/console-person.ts'
import type { Organization, Service } from '../../test/support/service.ts'
import { createShop } from '../../test/support/shop.ts'
import { axisEnd, plotOf, type TimeUnit } from '../src/reports/plot-data.ts'

const { service, open } = useConsole()

/** An organization with orders of three countries in two months. One country is a formula. */
async function createOrders(service: Service): Promise<Organization> {
  const shop = await createShop(
    service,
    { key: 'orders', kind: 'item', name: 'Orders' },
    { owner: 'orders', key: 'total', type: 'number', name: 'Total' },
    { owner: 'orders', key: 'country', type: 'text', name: 'Country' },
    { owner: 'orders', key: 'paid_at', type: 'datetime', name: 'Paid at' },
    { owner: 'orders', key: 'buyer', type: 'person', name: 'Buyer' },
  )
  await shop.client.people.create({ external_id: 'grace', first_name: 'Grace' })
  const order = (country: string | undefined, total: number, month: number) => ({
    op: 'create' as const,
    body: {
      attribute_values: { ...(country && { country }), total, paid_at: `2026-0${month}-10T12:00:00Z`, buyer: 'grace' },
    },
  })
  await shop.client
    .stack('orders')
    .batch([order('IT', 10.5, 1), order('IT', 20, 3), order('DE', 5, 3), order('=1+1', 1, 1), order(undefined, -2, 3)])
  return shop
}

const rows = (page: Page) =>
  page
    .getByRole('table', { name: 'Table' })
    .getByRole('row')
    .evaluateAll(all => all.slice(1).map(row => [...row.children].map(cell => cell.textContent)))

/** Chooses in a list that opens at a button. */
async function choose(page: Page, field: string | RegExp, option: string) {
  await page.getByRole('button', { name: field }).click()
  await page.getByRole('option', { name: option, exact: true }).click()
}

/** Chooses in a list that is narrowed by typing. */
async function find(page: Page, field: string, text: string) {
  await page.getByRole('combobox', { name: field }).fill(text)
  await page.keyboard.press('Enter')
}

it('a marketer builds a report from a list, shares its address, and takes it as CSV', async () => {
  const organization = await createOrders(service)
  await open(organization, '/records/orders', async page => {
    await page.getByRole('link', { name: 'Report', exact: true }).click()
    await expect.poll(() => rows(page)).toEqual([['All', '5']])
    await find(page, 'Grouped by', 'Country')
    await expect
      .poll(() => rows(page))
      .toEqual([
        ['IT', '2'],
        ['=1+1', '1'],
        ['DE', '1'],
        ['no value', '1'],
      ])
    // The only number is measured at once.
    await choose(page, /^Number Measure/, 'Sum')
    await expect
      .poll(() => rows(page))
      .toEqual([
        ['IT', '30.5'],
        ['DE', '5'],
        ['=1+1', '1'],
        ['no value', '-2'],
      ])
    await page.getByRole('img', { name: 'Sum: Total by Country. The largest is IT with 30.5.' }).waitFor()
    await button(page, 'Filter').click()
    await page.getByRole('combobox', { name: 'Field', exact: true }).fill('Total')
    await page.keyboard.press('Enter')
    await choose(page, /Operator/, 'is more than')
    await page.getByRole('textbox', { name: 'Value' }).fill('-2')
    await button(page, 'Apply').click()
    const expected = [
      ['IT', '30.5'],
      ['DE', '5'],
      ['=1+1', '1'],
    ]
    await expect.poll(() => rows(page)).toEqual(expected)
    const csv = await downloaded(page, () => button(page, 'Download as CSV').click())
    expect(csv).toBe("\ufeffCountry,Sum: Total\nIT,30.5\nDE,5\n'=1+1,1\n")
    await page.reload()
    await expect.poll(() => rows(page)).toEqual(expected)
    await choose(page, /first Order$/, 'Groups ascending')
    await expect.poll(() => rows(page)).toEqual([expected[2], expected[1], expected[0]])
    await choose(page, /At most/, '10 groups')
    await page.waitForURL(/limit=10/)
    await page.goBack()
    await page.goBack()
    await expect.poll(() => rows(page)).toEqual(expected)
  })
})

it('groups by months and a second field, and links the targets of a relationship', async () => {
  const organization = await createOrders(service)
  await open(organization, '/reports?owner=orders', async page => {
    await find(page, 'Grouped by', 'Paid')
    await expect
      .poll(() => rows(page))
      .toEqual([
        ['Jan 2026', '2'],
        ['Mar 2026', '3'],
      ])
    await page.getByText('Days begin at midnight in the time zone UTC.').waitFor()
    await choose(page, /Span of time/, 'Quarter')
    await expect.poll(() => rows(page)).toEqual([['Q1 2026', '5']])
    await find(page, 'And by', 'Buyer')
    await expect.poll(() => rows(page)).toEqual([['Q1 2026', 'Grace', '5']])
    const csv = await downloaded(page, () => button(page, 'Download as CSV').click())
    expect(csv).toBe('\ufeffPaid at,Buyer,Buyer: Identifier,Number\n2026-01-01,Grace,grace,5\n')
    await page.getByRole('link', { name: 'Grace' }).click()
    await page.getByRole('heading', { level: 1, name: 'Grace' }).waitFor()
    // The fields of the buyer, too.
    await page.goBack()
    await choose(page, /Span of time/, 'Month')
    await find(page, 'And by', 'Buyer: First')
    await expect
      .poll(() => rows(page))
      .toEqual([
        ['Jan 2026', 'Grace', '2'],
        ['Mar 2026', 'Grace', '3'],
      ])
  })
})

it('shows what the service refuses at its field', async () => {
  const organization = await createOrders(service)
  const gone = encodeURIComponent(JSON.stringify({ created_at: { $gte: 'yesterday' } }))
  await open(
    organization,
    `/reports?owner=orders&group=attribute_values.buyer.first_name_of&filter=${gone}`,
    async page => {
      const filter = page.getByRole('group').filter({ has: button(page, /^Filter/) })
      await filter.getByRole('alert').filter({ hasText: 'created_at' }).last().waitFor()
      await button(page, /^Filter/).click()
      await button(page, 'Clear the filter').click()
      await page.getByRole('combobox', { name: 'Grouped by' }).and(page.locator('[aria-invalid=true]')).waitFor()
      await find(page, 'Grouped by', 'Country')
      await expect.poll(() => rows(page)).toHaveLength(4)
    },
    { expectedErrors: /400/ },
  )
})

describe('the plot', () => {
  const plot = (spans: (TimeUnit | undefined)[], groups: [unknown[], number | null][], isAdded = true) =>
    plotOf({ spans, isAdded, groups: groups.map(([by, value]) => ({ by, measures: [value] })) })

  it('has a place for each span of time between the first and the last', () => {
    const groups: [unknown[], number][] = [
      [['2025-11-01'], 2],
      [['2026-02-01'], 4],
      [[null], 9],
    ]
    expect(plot(['month'], groups)).toEqual({
      kind: 'course',
      days: ['2025-11-01', '2025-12-01', '2026-01-01', '2026-02-01'],
      series: [{ key: undefined, values: [2, 0, 0, 4] }],
      hidden: 0,
    })
    // No average is not an average of 0.
    const averages = plot(['month'], groups, false)
    expect(averages).toMatchObject({ series: [{ values: [2, null, null, 4] }] })
  })

  it.each<[TimeUnit, [string, string], number]>([
    ['day', ['2026-03-28', '2026-03-30'], 3],
    ['week', ['2025-12-29', '2026-01-12'], 3],
    ['quarter', ['2025-10-01', '2026-04-01'], 3],
    ['year', ['1968-01-01', '1970-01-01'], 3],
  ])('counts the spans of a %s', (by, [first, last], length) => {
    const found = plot(
      [by],
      [
        [[first], 1],
        [[last], 1],
      ],
    )
    expect(found).toMatchObject({ days: { length, 0: first, [length - 1]: last } })
  })

  it('draws the five largest of the second group as lines', () => {
    const languages = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
    const groups = languages.flatMap((language, index): [unknown[], number][] => [
      [[language, '2026-01-01'], index],
      [[language, '2026-02-01'], 1],
    ])
    const found = plot([undefined, 'month'], groups)
    expect(found).toMatchObject({ hidden: 2, series: { length: 5, 0: { key: 'g', values: [6, 1] } } })
  })

  it('ends its axis at a round number', () => {
    expect([0, 0.07, 1, 31, 99, 450].map(axisEnd)).toEqual([1, 0.08, 1, 40, 100, 500])
  })
})
