import type { FastifyReply, FastifyRequest } from 'fastify'

/** One line a request. The route's template, never its address: an external identifier may be somebody's name. */
export function logRequest(request: FastifyRequest, reply: FastifyReply): void {
  request.log.info(
    {
      method: request.method,
      route: request.routeOptions.url ?? 'unknown',
      // Nobody took the answer: the client went away before it was all sent.
      ...(reply.raw.writableFinished ? { status: reply.statusCode } : { aborted: true }),
      duration_ms: Math.round(reply.elapsedTime * 10) / 10,
      organization: request.caller?.organization.key,
    },
    'request',
  )
}
