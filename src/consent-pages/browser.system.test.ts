import { describe, expect, it } from 'vitest'
import { checkAccessibility } from '../../test/support/accessibility.ts'
import { useLinkPages } from '../../test/support/link-pages.ts'

const { browser, visitAll } = useLinkPages()

const views = [
  { width: 1_280, colorScheme: 'dark' },
  { width: 360, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
] as const

const isTooWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'

describe('the pages in a browser', () => {
  it('have no violations of WCAG 2.2 AA in dark and at 360 px', async () => {
    await browser.open(page =>
      visitAll(page, async name => {
        for (const { width, colorScheme } of views) {
          await page.setViewportSize({ width, height: 740 })
          await page.emulateMedia({ colorScheme })
          const { violations, passes } = await checkAccessibility(page)
          expect([name, width, colorScheme, violations]).toEqual([name, width, colorScheme, []])
          expect(passes).toBeGreaterThan(10)
        }
      }),
    )
  })

  it('need no horizontal scrolling at 320 px, nor with text of twice the size', async () => {
    await browser.open(
      page =>
        visitAll(page, async name => {
          expect([name, await page.evaluate(isTooWide)]).toEqual([name, false])
          await page.evaluate(`document.documentElement.style.setProperty('font-size', '200%')`)
          expect([`${name}, large`, await page.evaluate(isTooWide)]).toEqual([`${name}, large`, false])
        }),
      { viewport: { width: 320, height: 600 } },
    )
  })
})
