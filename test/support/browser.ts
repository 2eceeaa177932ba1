import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, inject } from 'vitest'
import { launchChromium } from './chromium.ts'

/** A browser for the tests of a file. */
export type TestBrowser = {
  /** Opens an empty page in a context of its own, which has no cookies of others. Closes it after `work`. */
  open<T>(work: (page: Page, requested: string[]) => Promise<T>, options?: BrowserContextOptions): Promise<T>
}

/** Starts a Chromium before the tests of the file, and closes it after them. It is unpacked once in a run. */
export function useBrowser(): TestBrowser {
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await launchChromium(inject('runFolder'))
  }, 120_000)
  afterAll(() => browser?.close())
  return {
    open: async (work, options = {}) => {
      const context: BrowserContext = await browser!.newContext({ locale: 'en-GB', ...options })
      try {
        const page = await context.newPage()
        const requested: string[] = []
        page.on('request', request => requested.push(request.url()))
        return await work(page, requested)
      } finally {
        await context.close()
      }
    },
  }
}
