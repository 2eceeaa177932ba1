import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { startSession } from '../../src/sessions/sessions.ts'
import { type TestBrowser, useBrowser, type Visit } from './browser.ts'
import { signIn } from './browser-session.ts'
import { allScopes, type Organization, type Service, useOwnService } from './service.ts'

type ConsoleOptions = {
  /** The scopes of the session, separated by spaces. The default is all. */
  scope?: string
  /** The key of the role of the session. The default is none. */
  role?: string
  /** The name of the session, which the change log records. */
  name?: string
  /** The messages that the browser's console may have, such as the 503 that a test makes. */
  expectedErrors?: RegExp
} & Pick<Visit, 'viewport' | 'colorScheme' | 'locale'>

/** The service and the browser for the tests of a file, and functions that open pages of the console. */
export type TestConsole = {
  service: Service
  browser: TestBrowser
  /**
   * Opens a page of the console for somebody who is signed in, and calls `work`. Fails if the browser logged an error, if code of the page
   * threw, or if it sent a request to another host.
   */
  open(
    organization: Organization,
    path: string,
    work: (page: Page) => Promise<unknown>,
    options?: ConsoleOptions,
  ): Promise<void>
  /** Opens the page of a person, as `open` does. */
  openPerson: TestConsole['open']
}

/** Gives the tests of the file the console of a service of their own. Many of them fill indexes, which indexes the people of all organizations. */
export function useConsole(environment: Record<string, string> = {}): TestConsole {
  const service = useOwnService(environment)
  const browser = useBrowser()
  const open: TestConsole['open'] = async (organization, path, work, options = {}) => {
    const { scope, role, name = 'Ada', expectedErrors, ...look } = options
    const value =
      role === undefined
        ? (await signIn(service, organization, scope, name)).cookie.split('=').slice(1).join('=')
        : (await startSession(service.db, organization, { name, scope: allScopes, method: 'code', role })).token
    const visit = { url: `${service.address}/console${path}`, cookie: { name: 'kith_session', value }, ...look }
    await browser.visit(visit, async (page, requested, errors) => {
      await work(page)
      expect(errors.filter(text => !expectedErrors?.test(text))).toEqual([])
      expect(requested.filter(url => /^(https?|wss?):/.test(url) && !url.startsWith(`${service.address}/`))).toEqual([])
    })
  }
  const openPerson: TestConsole['open'] = (organization, address, ...rest) =>
    open(organization, `/people/${address}`, ...rest)
  return { service, browser, open, openPerson }
}

/** Elements of many pages. */
export const button = (page: Page, name: string | RegExp): Locator => page.getByRole('button', { name, exact: true })
export const dialog = (page: Page): Locator => page.getByRole('dialog')
