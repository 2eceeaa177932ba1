import type { FastifyReply, FastifyRequest } from 'fastify'

/** One line a request. The route's template, never its address: an external identifier may be somebody's name. */
export function logRequest(request: FastifyRequest, reply: FastifyReply): void {
  request.log.info(
    {
      method: request.method,
      route: request.routeOptions.url ?? 'unknown',
      status: reply.statusCode,
      duration_ms: Math.round(reply.elapsedTime * 10) / 10,
      organization: request.caller?.organization.key,
    },
    'request',
  )
}
