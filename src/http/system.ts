import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { statement } from '../db/db.ts'
import { fail } from '../errors.ts'
import type { House } from './pipeline.ts'
import { success } from './reply.ts'
import type { OpenRoute } from './route.ts'

const ping = statement('ping', 'select 1')

/** What the document says of the addresses of {@link serveSystem}. */
export const system_rows: OpenRoute[] = [
  {
    path: '/healthz',
    operation_id: 'getHealth',
    summary: 'Tell whether the process is alive',
    tag: 'System',
    answer: Type.Object({ healthy: Type.Literal(true) }, { examples: [{ healthy: true }] }),
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
export function serveSystem(server: FastifyInstance, { db, authenticator, drain }: House): void {
  const json = 'application/json; charset=utf-8'
  server.get('/healthz', (_request, reply) => reply.type(json).send(success({ data: { healthy: true } })))
  server.get('/readyz', async (request, reply) => {
    if (!drain.accepting()) notReady('The service is shutting down.')
    try {
      await db.query(ping, [], request.deadline.signal)
    } catch {
      notReady('The database cannot be reached.')
    }
    return reply.type(json).send(success({ data: { ready: true } }))
  })
  server.get('/.well-known/jwks.json', async (_request, reply) =>
    reply.type(json).send(JSON.stringify(await authenticator.jwks())),
  )
}

function notReady(message: string): never {
  fail('operation_failed', message, { status: 503, headers: { 'Retry-After': '1' } })
}
