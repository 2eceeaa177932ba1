import type { FastifyInstance } from 'fastify'
import { statement } from '../db/db.ts'
import { fail } from '../errors.ts'
import type { House } from './pipeline.ts'
import { success } from './reply.ts'

const ping = statement('ping', 'select 1')

/** The addresses outside `/v1`, which want no token: is the process alive, is it ready, which keys sign tokens. */
export function serveSystem(server: FastifyInstance, { db, authenticator }: House, accepting: () => boolean): void {
  const json = 'application/json; charset=utf-8'
  server.get('/healthz', (_request, reply) => reply.type(json).send(success({ healthy: true })))
  server.get('/readyz', async (request, reply) => {
    if (!accepting()) notReady('The service is shutting down.')
    try {
      await db.query(ping, [], request.deadline.signal)
    } catch {
      notReady('The database cannot be reached.')
    }
    return reply.type(json).send(success({ ready: true }))
  })
  server.get('/.well-known/jwks.json', (_request, reply) => reply.type(json).send(JSON.stringify(authenticator.jwks())))
}

function notReady(message: string): never {
  fail('operation_failed', message, { status: 503, headers: { 'Retry-After': '1' } })
}
