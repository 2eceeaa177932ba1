import { createSignInCode } from '../../src/sessions/sessions.ts'
import { allScopes, type Organization, type Reply, type Send, type Service } from './service.ts'

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
