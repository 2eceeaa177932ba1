import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { useBrowser } from '../../test/support/browser.ts'
import { codeFor, signIn } from '../../test/support/browser-session.ts'
import { startIssuer, type TestIssuer } from '../../test/support/issuer.ts'
import { type Organization, type Service, startService } from '../../test/support/service.ts'

const browser = useBrowser()
let issuer: TestIssuer
let service: Service
let organization: Organization
/** The service has another name than the issuer, which is at 127.0.0.1. So a browser treats them as different sites. */
let address: string
beforeAll(async () => {
  issuer = await startIssuer()
  service = await startService(issuer.environment)
  organization = await service.organization()
  address = service.address.replace('127.0.0.1', 'localhost')
})
afterAll(async () => {
  await service?.stop()
  await issuer?.stop()
})

/** Sends a request from the open page. Returns the status, and the name of the session in the response. */
const request = (page: Page, url: string, init: object = {}) =>
  page.evaluate<[number, string | undefined]>(
    `fetch(${JSON.stringify(url)}, ${JSON.stringify(init)}).then(async response => [response.status, (await response.json()).data?.name])`,
  )

/** Submits a form from a page of the issuer, which needs no permission. Returns the error code of the response. */
async function submitFromIssuer(page: Page, action: string): Promise<string> {
  await page.goto(issuer.url)
  const form = `Object.assign(document.createElement('form'), { method: 'POST', action: ${JSON.stringify(action)} })`
  await page.evaluate(`document.body.appendChild(${form}).submit()`)
  await page.waitForURL(action)
  return JSON.parse((await page.textContent('body')) ?? '').error
}

it('a browser that another site leads back has its session at once, and one that another site sends has to press the button', async () => {
  issuer.claims = { org: organization.key, scope: 'people:read', name: 'Ada Lovelace' }
  await browser.open(async page => {
    await page.goto(issuer.url)
    await page.evaluate(`void location.assign(${JSON.stringify(`${address}/console/oidc/start`)})`)
    await page.waitForURL(`${address}/console/sign-in`)
    expect(await request(page, '/console/session')).toEqual([200, undefined])
    await page.goto(`${address}/console/oidc/start`)
    expect(await request(page, '/console/session')).toEqual([200, 'Ada Lovelace'])
    expect(await page.evaluate('document.cookie')).toBe('')
    expect((await page.context().cookies()).filter(({ name }) => name === 'kith_session')).toMatchObject([
      { httpOnly: true, sameSite: 'Strict', path: '/' },
    ])
  })
})

it('a page signs in by the code of a link, and a page of another site can do nothing with the session', async () => {
  const code = await codeFor(service, organization, 'people:read people:write', 'Operator')
  await browser.open(async page => {
    await page.goto(`${address}/healthz`)
    const json = { 'Content-Type': 'application/json' }
    const body = JSON.stringify({ code })
    expect(await request(page, '/console/session', { method: 'POST', headers: json, body })).toEqual([200, 'Operator'])
    const create = { method: 'POST', headers: json, body: '{"external_id":"ada"}' }
    expect((await request(page, '/v1/people', create))[0]).toBe(201)
    // The browser omits the cookie.
    expect(await submitFromIssuer(page, `${address}/v1/people?external_id=eve`)).toBe('unauthorized')
  })
  // For a browser, a page at another port belongs to the same site, so it sends the cookie. The service refuses it.
  const { cookie } = await signIn(service, organization)
  await browser.open(async page => {
    const [name, value] = cookie.split('=') as [string, string]
    await page.context().addCookies([{ name, value, url: service.address, httpOnly: true, sameSite: 'Strict' }])
    expect(await submitFromIssuer(page, `${service.address}/v1/people?external_id=eve`)).toBe('forbidden')
  })
  expect((await organization.send('GET', '/v1/people/eve')).status).toBe(404)
})
