import { Type } from 'typebox'
import { statement } from '../db/db.ts'
import { fail } from '../errors.ts'
import { version } from '../version.ts'
import type { House } from './pipeline.ts'
import { success } from './reply.ts'
import type { OpenRoute } from './route.ts'
import type { Router } from './router.ts'

const ping = statement('ping', 'select 1')

/** What the document says of the addresses of {@link serveSystem}. */
export const system_rows: OpenRoute[] = [
  {
    path: '/healthz',
    operation_id: 'getHealth',
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
    operation_id: 'getReadiness',
    summary: 'Tell whether the service takes requests',
    description: 'Not while the database is away or the service is shutting down.',
    tag: 'System',
    answer: Type.Object({ ready: Type.Literal(true) }, { examples: [{ ready: true }] }),
    enveloped: true,
    refusals: { 503: 'operation_failed' },
  },
  {
    path: '/.well-known/jwks.json',
    operation_id: 'getSigningKeys',
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
export function serveSystem(places: Router, { db, authenticator, drain }: House): void {
  const [health, readiness, keys] = system_rows.map(({ path }) => path) as [string, string, string]
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
      try {
        await db.query(ping, [], exchange.deadline.signal)
      } catch {
        notReady('The database cannot be reached.')
      }
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
