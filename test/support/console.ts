import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import type { TestBrowser } from './browser.ts'
import { signIn } from './browser-session.ts'
import type { Organization, Service } from './service.ts'

type ConsoleOptions = {
  /** The scopes of the session, separated by spaces. The default is all. */
  scope?: string
  /** The name of the session, which the change log records. */
  name?: string
  /** What the browser's console may say, such as the 503 that a test makes. */
  expectedErrors?: RegExp
  /** The look of the window. */
  context?: Pick<Parameters<TestBrowser['visit']>[0], 'viewport' | 'colorScheme' | 'locale'>
}

/**
 * Opens a page of the console for somebody who is signed in, and calls `work`. Fails if the browser logged an error, if code of
 * the page threw, or if it sent a request to another host.
 */
export async function openConsole(
  { service, browser, organization }: { service: Service; browser: TestBrowser; organization: Organization },
  path: string,
  work: (page: Page) => Promise<void>,
  { scope, name = 'Ada', expectedErrors, context = {} }: ConsoleOptions = {},
): Promise<void> {
  const { cookie } = await signIn(service, organization, scope, name)
  const value = cookie.slice(cookie.indexOf('=') + 1)
  const visit = { url: `${service.address}/console${path}`, cookie: { name: 'kith_session', value }, ...context }
  await browser.visit(visit, async (page, requested, errors) => {
    await work(page)
    expect(errors.filter(text => !expectedErrors?.test(text))).toEqual([])
    expect(requested.filter(url => /^(https?|wss?):/.test(url) && !url.startsWith(`${service.address}/`))).toEqual([])
  })
}

/** Returns a function that opens the page of a person, as {@link openConsole}. */
export const personOpener =
  (service: Service, browser: TestBrowser) =>
  (
    organization: Organization,
    address: string,
    work: (page: Page) => Promise<void>,
    options?: Parameters<typeof openConsole>[3],
  ) =>
    openConsole({ service, browser, organization }, `/people/${address}`, work, options)
