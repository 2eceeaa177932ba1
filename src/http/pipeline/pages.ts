import type { HookRoute, HtmlPage, PageCall, PageRoute } from '../../route/page.ts'
import { pageHeaders, pagePolicy } from '../../route/page-headers.ts'
import { clientAddress } from '../input/request-head.ts'
import type { Exchange } from './exchange.ts'
import { explain } from './log.ts'
import { throwReaderOnly } from './pipeline.ts'
import { success } from './reply.ts'
import type { Router } from './router.ts'
import type { Services } from './services.ts'

const html = 'text/html; charset=utf-8'

/** The parameter at the end of a path. */
function lastSegment(url: string): string {
  const [path = ''] = url.split('?')
  return path.slice(path.lastIndexOf('/') + 1)
}

/**
 * Adds the pages for people, which are outside `/v1`. GET and HEAD only read, and POST writes. The requests of one
 * network are limited before their body is read. Refusals of a page are pages too.
 */
export function registerPages(router: Router, services: Services, pages: readonly PageRoute[]): void {
  const { config, db, logger } = services
  const { limits, rates, behindProxy } = config
  let limiter: Promise<(address: string) => Promise<unknown>> | undefined
  const spend = async (address: string) => {
    // The first page loads the libraries of rate limits.
    limiter ??= import('../overload/rate-limit.ts').then(({ createPageLimiter }) => createPageLimiter(rates.pages))
    return (await limiter)(address)
  }

  const callOf = ({ request, url, id, deadline }: Exchange): PageCall => ({
    db,
    limits,
    token: lastSegment(url),
    body: undefined,
    contentType: request.headers['content-type'],
    address: clientAddress(request, behindProxy),
    userAgent: request.headers['user-agent'],
    acceptLanguage: request.headers['accept-language'],
    request_id: id,
    signal: deadline.signal,
  })

  for (const { path, bodyBytes, show, submit, refuse } of pages) {
    const sendRefusal = (exchange: Exchange, call: PageCall, error: unknown) => {
      const refusal = explain(exchange, error, logger)
      exchange.refused = refusal.code
      if (refusal.headers) exchange.headers(refusal.headers)
      sendPage(exchange, refuse(call, refusal))
    }
    const addMethod = (method: 'GET' | 'POST', answer: (call: PageCall) => Promise<HtmlPage>) =>
      router.add({
        method,
        path,
        bodyBytes,
        check: async exchange => {
          try {
            await spend(clientAddress(exchange.request, behindProxy))
            if (method === 'POST' && services.reads.isReader) throwReaderOnly()
          } catch (error) {
            sendRefusal(exchange, callOf(exchange), error)
          }
        },
        handle: async (exchange, body) => {
          exchange.isRead = method === 'GET'
          const call = { ...callOf(exchange), body }
          try {
            sendPage(exchange, await answer(call))
          } catch (error) {
            sendRefusal(exchange, call, error)
          }
        },
      })
    addMethod('GET', show)
    addMethod('POST', submit)
  }
}

function sendPage(exchange: Exchange, { status, html: text, style }: HtmlPage) {
  exchange.headers(pageHeaders(pagePolicy(style)))
  exchange.header('X-Robots-Tag', 'noindex, nofollow')
  exchange.send(status, text, html)
}

const noBody = Buffer.alloc(0)

/** Adds the paths for requests of other services. Their handlers check the signatures themselves. */
export function registerHooks(router: Router, services: Services, hooks: readonly HookRoute[]): void {
  const { config, db, instruments, reads } = services
  for (const { path, bodyBytes, handle } of hooks)
    router.add({
      method: 'POST',
      path,
      bodyBytes,
      check: () => {
        if (reads.isReader) throwReaderOnly()
      },
      handle: async (exchange, body = noBody) => {
        const data = await handle({
          db,
          limits: config.limits,
          observer: instruments.observer,
          token: lastSegment(exchange.url),
          headers: exchange.request.headers,
          body,
          request_id: exchange.id,
          signal: exchange.deadline.signal,
        })
        exchange.send(200, success({ data }))
      },
    })
}
