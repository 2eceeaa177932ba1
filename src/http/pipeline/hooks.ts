import type { HookRoute } from '../../route/hook.ts'
import { throwReaderOnly } from './pipeline.ts'
import { success } from './reply.ts'
import type { Router } from './router.ts'
import type { Services } from './services.ts'

const noBody = Buffer.alloc(0)

/** Adds the paths of other services' requests, which check their signatures themselves. */
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
        const [target = ''] = exchange.url.split('?')
        const data = await handle({
          db,
          limits: config.limits,
          observer: instruments.observer,
          token: target.slice(target.lastIndexOf('/') + 1),
          headers: exchange.request.headers,
          body,
          request_id: exchange.id,
          signal: exchange.deadline.signal,
        })
        exchange.send(200, success({ data }))
      },
    })
}
