import { Type } from 'typebox'
import { statement } from '../../db/db.ts'
import { readOnlyMessage } from '../../db/pg-errors.ts'
import { fail } from '../../errors.ts'
import { version } from '../../version.ts'
import type { Services } from '../pipeline/pipeline.ts'
import { success } from '../pipeline/reply.ts'
import type { OpenRoute } from '../pipeline/route.ts'
import type { Router } from '../pipeline/router.ts'
import { singleFlight } from './single-flight.ts'

const readReadinessSql = statement(
  'read_readiness',
  `select current_setting('transaction_read_only')::boolean as read_only`,
)

/** What the document says of the addresses of {@link registerHealthRoutes}. */
export const systemRows: OpenRoute[] = [
  {
    path: '/healthz',
    operationId: 'getHealth',
    summary: 'Tell whether the process is alive',
    tag: 'System',
    description: 'It names the version of kith that runs.',
    answer: Type.Object(
      { healthy: Type.Literal(true), version: Type.String() },
      { examples: [{ healthy: true, version: '1.0.0' }] },
    ),
    enveloped: true,
  },
  {
    path: '/readyz',
    operationId: 'getReadiness',
    summary: 'Tell whether the service takes requests',
    description: 'Not while the database is away or read-only, as a standby is, or the service is shutting down.',
    tag: 'System',
    answer: Type.Object({ ready: Type.Literal(true) }, { examples: [{ ready: true }] }),
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

/** The addresses outside `/v1`, which want no token: is the process alive, is it ready, which keys sign tokens. */
export function registerHealthRoutes(places: Router, { db, authenticator, drain, config }: Services): void {
  // A flood of these must not queue for connections before everybody else's work.
  const askDatabase = singleFlight(() =>
    db.query<{ read_only: boolean }>(readReadinessSql, [], AbortSignal.timeout(config.limits.requestMs)),
  )
  const [health, readiness, keys] = systemRows.map(({ path }) => path) as [string, string, string]
  places.add({
    method: 'GET',
    path: health,
    handle: exchange => exchange.send(200, success({ data: { healthy: true, version } })),
  })
  places.add({
    method: 'GET',
    path: readiness,
    handle: async exchange => {
      if (!drain.accepting()) notReady('The service is shutting down.')
      const [database] = await askDatabase().catch(() => notReady('The database cannot be reached.'))
      if (database?.read_only) notReady(readOnlyMessage)
      exchange.send(200, success({ data: { ready: true } }))
    },
  })
  places.add({
    method: 'GET',
    path: keys,
    handle: async exchange => exchange.send(200, JSON.stringify(await authenticator.jwks())),
  })
}

function notReady(message: string): never {
  fail('operation_failed', message, { status: 503, headers: { 'Retry-After': '1' } })
}
