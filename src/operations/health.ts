import { diskFullMessage, readOnlyMessage } from '../db/pg-errors.ts'
import { readReadiness } from '../db/servers/readiness.ts'
import { success } from '../http/pipeline/reply.ts'
import type { Router } from '../http/pipeline/router.ts'
import type { Services } from '../http/pipeline/services.ts'
import { singleFlight } from '../instruments/single-flight.ts'
import { version } from '../process/version.ts'
import type { OpenRoute } from '../route/route.ts'
import { refuse, retryInASecond } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'

/** The reason why a standby is not ready for reads, see {@link StandbyState}. */
const standbyMessages = {
  away: 'The standby cannot be reached.',
  behind: 'The standby is further behind its primary than KITH_READER_MAX_LAG_SECONDS allows.',
  tables: 'The standby does not have the tables of this version of kith yet. Migrate the primary.',
}

/** The descriptions of the paths of {@link registerHealthRoutes} for the OpenAPI document. */
export const healthRows: OpenRoute[] = [
  {
    path: '/healthz',
    operationId: 'getHealth',
    summary: 'Check whether the process is alive',
    tag: 'System',
    description: 'Returns the version of kith.',
    answer: Type.Object(
      { healthy: Type.Literal(true), version: Type.String() },
      { examples: [{ healthy: true, version: '1.0.0' }] },
    ),
    enveloped: true,
  },
  {
    path: '/readyz',
    operationId: 'getReadiness',
    summary: 'Check whether the service accepts requests',
    description:
      'Returns 503 while the database is unreachable, read-only, as a standby is, or out of disk space, or the service is shutting down. A reader ' +
      '(KITH_ROLE=reader) is ready on a standby that responds and is not too far behind.',
    tag: 'System',
    answer: Type.Object(
      {
        ready: Type.Literal(true),
        reader: Type.Optional(
          Type.Enum(['ready', 'away', 'behind', 'tables'], {
            description:
              'With DATABASE_READ_URL: whether the standby serves reads. It does not while it is away, too far behind, or lacks tables of this version. The primary then serves them.',
          }),
        ),
      },
      { examples: [{ ready: true }] },
    ),
    enveloped: true,
    refusals: { 503: 'operation_failed' },
  },
  {
    path: '/.well-known/jwks.json',
    operationId: 'getSigningKeys',
    summary: 'Read the public keys that sign tokens',
    description: 'A JSON Web Key Set (RFC 7517).',
    tag: 'System',
    answer: Type.Object({
      keys: Type.Array(Type.Object({ kty: Type.String(), kid: Type.String() }, { additionalProperties: true })),
    }),
    enveloped: false,
  },
]

/** Adds the paths outside `/v1` that need no token: liveness, readiness, and the public keys that sign tokens. */
export function registerHealthRoutes(router: Router, services: Services): void {
  const { db, reads, authenticator, drain, config } = services
  // A flood of probes must not queue for connections before requests. So concurrent probes share one query.
  const readDatabase = singleFlight(() => readReadiness(db, AbortSignal.timeout(config.limits.requestMs)))
  const [health, readiness, keys] = healthRows.map(({ path }) => path) as [string, string, string]
  router.get(health, exchange => exchange.send(200, success({ data: { healthy: true, version } })))
  router.get(readiness, async exchange => {
    if (!drain.isAccepting()) throwNotReady('The service is shutting down.')
    const standby = reads.standby()
    if (reads.isReader) {
      const { condition } = standby!
      if (condition !== 'ready') throwNotReady(standbyMessages[condition])
      return exchange.send(200, success({ data: { ready: true } }))
    }
    const database = await readDatabase().catch(() => throwNotReady('The database cannot be reached.'))
    if (database === 'read_only') throwNotReady(readOnlyMessage)
    if (database === 'disk_full') throwNotReady(diskFullMessage)
    exchange.send(200, success({ data: { ready: true, ...(standby && { reader: standby.condition }) } }))
  })
  router.get(keys, async exchange => exchange.send(200, JSON.stringify(await authenticator.jwks())))
}

function throwNotReady(message: string): never {
  refuse('operation_failed', message, retryInASecond)
}
