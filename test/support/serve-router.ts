import { readsOfPrimary } from '../../src/db/standby/reads.ts'
import { createGate } from '../../src/http/overload/gate.ts'
import { createPipeline } from '../../src/http/pipeline/pipeline.ts'
import type { Router } from '../../src/http/pipeline/router.ts'
import { createDrain } from '../../src/http/server/drain.ts'
import { createServer } from '../../src/http/server/server.ts'
import { createInstruments } from '../../src/instruments/instruments.ts'
import { FairPool } from '../../src/process/fair-pool.ts'
import { loggerTo } from '../../src/process/logger.ts'
import type { Service } from './service.ts'

/** Serves the endpoints of a router alone, on the database and with the settings of a service. */
export async function serveRouter({ config, db, authenticator }: Service, router: Router) {
  const instruments = createInstruments()
  const services = {
    db,
    config,
    authenticator,
    instruments,
    drain: createDrain(),
    logger: loggerTo(() => {}, 'info'),
    rateLimiter: undefined,
    accessLog: undefined,
    reads: readsOfPrimary(db),
  }
  const gate = createGate({
    config,
    authenticator,
    shouldClose: () => false,
    observer: instruments.observer,
    report: () => {},
  })
  const memory = { responseMemory: new FairPool({ max: 2 ** 20 }), running: new FairPool({ share: 8 }) }
  const app = createServer(services, gate, createPipeline({ ...services, ...memory }, gate, router))
  return { address: await app.listen({ host: '127.0.0.1', port: 0 }), close: () => app.close() }
}
