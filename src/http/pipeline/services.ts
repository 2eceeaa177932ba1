import type { AccessLog } from '../../accesses/access-log.ts'
import type { Authenticator } from '../../auth/authenticator.ts'
import type { DatabasePool } from '../../db/db.ts'
import type { Reads } from '../../db/standby/reads.ts'
import type { Config } from '../../process/config.ts'
import type { FairPool } from '../../process/fair-pool.ts'
import type { Logger } from '../../process/logger.ts'
import type { Instruments } from '../../process/observer.ts'
import type { RateLimiter } from '../overload/rate-limit.ts'
import type { Drain } from '../server/drain.ts'

/** The services that the requests of a process share. */
export type Services = {
  db: DatabasePool
  /** Selects the database of each read. */
  reads: Reads
  config: Config
  authenticator: Authenticator
  drain: Drain
  logger: Logger
  instruments: Instruments
  /** Absent if no rate limit is configured. */
  rateLimiter?: RateLimiter | undefined
  /** Absent if accesses are not logged. */
  accessLog?: AccessLog | undefined
}

/** The services that the rows of the route table need. */
export type RowServices = Services & {
  responseMemory: FairPool
  /** The requests in progress. Further admitted requests wait until there is room. */
  running: FairPool
}
