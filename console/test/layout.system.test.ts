import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useConsole } from '../../test/support/console.ts'
import { createCustomers } from '../../test/support/console-people.ts'

const { service, open } = useConsole()

it('a page that is longer than its window scrolls once: a nested filter keeps its tabs, and hidden texts make the window no longer', async () => {
  const shop = await createCustomers(service)
  const deep = { $and: Array.from({ length: 3 }, (_, number) => ({ language: `l${number}` })) }
  const filter = { $or: [deep, { $not: deep }, { 'attribute_values.referrer': { $some: deep } }] }
  // How much longer than its window each scrolled element is, the window among them.
  const overflow = (page: Page) =>
    page.evaluate<[string, number][]>(
      `[document.documentElement, ...document.querySelectorAll('main, main *')]
        .filter(element => element === document.documentElement || /auto|scroll/.test(getComputedStyle(element).overflowY))
        .map(element => [element.getAttribute('role') ?? element.localName, element.scrollHeight - element.clientHeight])
        .filter(([, pixels]) => pixels > 0)`,
    )
  await open(
    shop,
    `/people?filter=${encodeURIComponent(JSON.stringify(filter))}`,
    async page => {
      await page.getByText('Nobody matches the filter').or(page.getByRole('table')).first().waitFor()
      await page.getByRole('button', { name: /^Filter/ }).click()
      await page.getByRole('tab', { name: 'Conditions' }).waitFor()
      await page.getByRole('textbox', { name: 'Value' }).nth(8).waitFor()
      expect(await overflow(page)).toEqual([['main', expect.any(Number)]])
      for (const width of [1_280, 360]) {
        await page.setViewportSize({ width, height: 400 })
        await page.goto(`${service.address}/console/people/ada`)
        await page.getByRole('list', { name: 'History' }).waitFor()
        await page.getByText('Loading…').first().waitFor({ state: 'hidden' })
        expect(await overflow(page)).toEqual([['main', expect.any(Number)]])
      }
    },
    { viewport: { width: 1_280, height: 720 } },
  )
})

it('a page shows a long name of the session in one line, and headers that are not cut, in every language', async () => {
  const organization = await service.organization()
  await organization.client.people.create({ external_id: 'ada', first_name: 'Ada' })
  const name = 'Customer service (default.Ar7kQ0x9Zb3LmN5p)'
  for (const locale of ['en-GB', 'de-DE', 'it-IT'])
    await open(
      organization,
      `/people?columns=${encodeURIComponent('mobile_prefix,mobile_number,created_at')}`,
      async page => {
        await page.getByRole('columnheader').first().waitFor()
        const cut =
          '[...document.querySelectorAll("[role=columnheader]")].filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length'
        expect(await page.evaluate(cut)).toBe(0)
        const shown = page.getByText(name)
        expect(await shown.getAttribute('title')).toBe(name)
        // Two lines would have 38 pixels.
        expect((await shown.boundingBox())!.height).toBeLessThan(30)
      },
      { name, locale },
    )
})
