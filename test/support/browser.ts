import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, inject } from 'vitest'
import { launchChromium } from './chromium.ts'

/** An address, the cookie that is sent with it, and the look of the window. */
export type Visit = {
  url: string
  cookie: { name: string; value: string }
  /** The size of the window. The default is Playwright's, 1280 by 720. */
  viewport?: { width: number; height: number } | undefined
  colorScheme?: 'light' | 'dark' | undefined
  locale?: string | undefined
}

/** The browser for the tests of a file. */
export type TestBrowser = {
  /** Opens an empty page in a context of its own, which has no cookies of others. Closes it after `work`. */
  open<T>(work: (page: Page, requested: string[]) => Promise<T>, options?: BrowserContextOptions): Promise<T>
  /**
   * Opens an address in a page that the visits of a file share, one after another. No visit sees the cookies and the stored data of
   * another one. A page of the console takes 0.25 s of processor time this way, and 0.5 s in a context of its own.
   */
  visit<T>(visit: Visit, work: (page: Page, requested: string[], errors: string[]) => Promise<T>): Promise<T>
}

let running: Promise<Browser> | undefined

/**
 * The browser of this worker, which starts with the first file that needs it. Chromium ends when its pipe closes, so it ends with the
 * worker, however that ends. Its files are in the folder of the run.
 */
async function workerBrowser(): Promise<Browser> {
  running ??= launchChromium(inject('runFolder'))
  const browser = await running.catch(() => undefined)
  if (browser?.isConnected()) return browser
  running = launchChromium(inject('runFolder'))
  return running
}

/** Gives the tests of the file a Chromium. */
export function useBrowser(): TestBrowser {
  let browser: Browser
  /** The pages that no visit has at present, by the locale of their context. */
  const idle = new Map<string, Page>()
  beforeAll(async () => {
    browser = await workerBrowser()
  }, 120_000)
  afterAll(async () => {
    for (const page of idle.values()) await page.context().close()
  })
  const newPage = async (options: BrowserContextOptions) => (await browser.newContext(options)).newPage()
  return {
    open: async (work, options = {}) => {
      const page = await newPage({ locale: 'en-GB', ...options })
      try {
        const requested: string[] = []
        page.on('request', request => requested.push(request.url()))
        return await work(page, requested)
      } finally {
        await page.context().close()
      }
    },
    visit: async ({ url, cookie, viewport, colorScheme, locale = 'en-GB' }, work) => {
      const page = idle.get(locale) ?? (await newPage({ locale }))
      idle.delete(locale)
      try {
        await page.setViewportSize(viewport ?? { width: 1280, height: 720 })
        await page.emulateMedia({ colorScheme: colorScheme ?? 'light' })
        await page.context().setOffline(false)
        await page.context().clearCookies()
        await page.context().addCookies([{ ...cookie, url: new URL(url).origin, httpOnly: true, sameSite: 'Strict' }])
        const { requested, errors } = recordNext(page)
        const script = await page.addInitScript('localStorage.clear(); sessionStorage.clear()')
        await page.goto(url)
        await script.dispose()
        const result = await work(page, requested, errors)
        await page.unrouteAll({ behavior: 'ignoreErrors' })
        for (const event of ['request', 'framenavigated', 'console', 'pageerror', 'response', 'dialog'])
          page.removeAllListeners(event)
        idle.set(locale, page)
        return result
      } catch (error) {
        await page.context().close()
        throw error
      }
    },
  }
}

/**
 * Records the requests and the errors of the document that the page loads next, and of those after it. The program of the document
 * before it may still run until then.
 */
function recordNext(page: Page): { requested: string[]; errors: string[] } {
  const requested: string[] = []
  const errors: string[] = []
  let state: 'before' | 'requested' | 'loaded' = 'before'
  page.on('request', request => {
    if (state === 'before' && request.isNavigationRequest()) state = 'requested'
    if (state !== 'before') requested.push(request.url())
  })
  page.on('framenavigated', () => {
    if (state === 'requested') state = 'loaded'
  })
  page.on('console', message => state === 'loaded' && message.type() === 'error' && errors.push(message.text()))
  page.on('pageerror', error => state === 'loaded' && errors.push(String(error)))
  return { requested, errors }
}
