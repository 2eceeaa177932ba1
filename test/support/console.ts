import { createRequire } from 'node:module'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { createClient } from '../../src/auth/clients.ts'
import { createSignInCode } from '../../src/sessions/sessions.ts'
import type { TestBrowser } from './browser.ts'
import { allScopes, type Organization, type Reply, type Send, type Service } from './service.ts'

const require = createRequire(import.meta.url)

type ConsoleOptions = {
  /** The scopes of the session, all by default. */
  scopes?: string[]
  /** What the browser's console may say, such as the 503 that a test makes. */
  expectedErrors?: RegExp
  context?: BrowserContextOptions
}

/** The cookie of a new session of the organization, signed in by a client's credentials as its sign-in page does. */
export async function signInToConsole(
  service: Service,
  organization: Organization,
  scopes?: string[],
): Promise<string> {
  const credentials = await createClient(service.db, {
    organizationKey: organization.key,
    name: 'Ada',
    scope: scopes?.join(' ') ?? allScopes,
  })
  const response = await fetch(`${service.address}/console/session`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Origin: service.address, 'Sec-Fetch-Site': 'same-origin' },
    body: JSON.stringify(credentials),
  })
  expect(response.status).toBe(200)
  return /^kith_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')![1]!
}

/**
 * Opens a page of the console for somebody who is signed in, and calls `work`. Fails if the browser logged an error, if code of
 * the page threw, or if it sent a request to another host.
 */
export async function openConsole(
  { service, browser, organization }: { service: Service; browser: TestBrowser; organization: Organization },
  path: string,
  work: (page: Page) => Promise<void>,
  { scopes, expectedErrors, context = {} }: ConsoleOptions = {},
): Promise<void> {
  const value = await signInToConsole(service, organization, scopes)
  await browser.open(async (page, requested) => {
    const errors: string[] = []
    page.on('console', message => message.type() === 'error' && errors.push(message.text()))
    page.on('pageerror', error => errors.push(String(error)))
    await page
      .context()
      .addCookies([{ name: 'kith_session', value, url: service.address, httpOnly: true, sameSite: 'Strict' }])
    await page.goto(`${service.address}/console${path}`)
    await work(page)
    expect(errors.filter(text => !expectedErrors?.test(text))).toEqual([])
    expect(requested.filter(url => /^(https?|wss?):/.test(url) && !url.startsWith(`${service.address}/`))).toEqual([])
  }, context)
}

const axePath = require.resolve('axe-core/axe.min.js')

/** What axe-core finds on the page for WCAG 2.2 AA: a line for each rule and element. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // The policy of the page allows no script of others, so axe is evaluated by the browser's debugger.
  const { readFileSync } = await import('node:fs')
  await page.evaluate(readFileSync(axePath, 'utf8'))
  return page.evaluate(async () => {
    const axe = (
      globalThis as unknown as {
        axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> }
      }
    ).axe
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
    const { violations } = await axe.run({ runOnly: { type: 'tag', values: tags } })
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`))
  })
}

/** The header that a browser sends with each request of a page of the service itself. */
export const samePage = { 'Sec-Fetch-Site': 'same-origin' }

/** A session of the console, as a browser has it. `cookie` is the Cookie header. */
export type BrowserSession = { cookie: string; setCookie: string; reply: Reply; send: Send }

/** Sends a request as a page does, without an Authorization header. */
export async function sendAsPage(
  { address }: Pick<Service, 'address'>,
  method: string,
  path: string,
  { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
): Promise<Reply> {
  const response = await fetch(`${address}${path}`, {
    method,
    headers: { ...samePage, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Reply['body'] }
}

/** Creates the code of a one-time link. */
export const codeFor = (service: Service, { key }: Pick<Organization, 'key'>, scope = allScopes, name = 'tests') =>
  createSignInCode(service.db, { organizationKey: key, scope, name })

/** Signs in to the console with a one-time code. */
export async function signIn(
  service: Service,
  organization: Pick<Organization, 'key'>,
  scope = allScopes,
  name = 'tests',
): Promise<BrowserSession> {
  const code = await codeFor(service, organization, scope, name)
  const reply = await sendAsPage(service, 'POST', '/console/session', { body: { code } })
  const setCookie = reply.headers.get('set-cookie') ?? ''
  const cookie = setCookie.split(';')[0]!
  return {
    cookie,
    setCookie,
    reply,
    send: (method, path, body, headers = {}) =>
      sendAsPage(service, method, path, { body, headers: { cookie, ...headers } }),
  }
}
