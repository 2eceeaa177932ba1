import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault, refuse } from '../errors.ts'
import { type Deadline, startDeadline } from './deadline.ts'
import type { Drain } from './drain.ts'
import { logRequest } from './log.ts'
import type { Route } from './route.ts'

declare module 'fastify' {
  interface FastifyRequest {
    deadline: Deadline
    row: Route | undefined
    /** The handler's work, from the moment that the whole request is there. */
    work: Promise<unknown> | undefined
  }
}

export const isVersioned = (url: string): boolean => /^\/v1([/?#]|$)/.test(url)

const draining = new Fault(
  refuse('operation_failed', 'The service is shutting down.', { status: 503, headers: { 'Retry-After': '1' } }),
)

/**
 * The first and the last moment of every request. It is given its time and its id and is counted in; when its
 * connection is done with it, answered or not, it is logged, and once its work has ended, too, counted out.
 */
export function admit(
  server: FastifyInstance,
  { request_ms, drain }: { request_ms: number; drain: Drain },
  answerError: (request: FastifyRequest, reply: FastifyReply, error: unknown) => void,
): void {
  server.decorateRequest('deadline')
  server.decorateRequest('work')
  server.decorateRequest('row')
  server.addHook('onRequest', (request, reply, done) => {
    reply.header('X-Request-Id', request.id)
    request.deadline = startDeadline(request_ms)
    const { signal } = request.deadline
    signal.addEventListener('abort', () => {
      // The body is still on its way: nobody else would notice that the time is over.
      if (!request.work) answerError(request, reply.header('Connection', 'close'), signal.reason)
    })
    const leave = isVersioned(request.url) ? drain.enter() : () => {}
    reply.raw.once('close', () => {
      logRequest(request, reply)
      finish(request, reply, leave)
    })
    done(isVersioned(request.url) && drain.refusing() ? draining : undefined)
  })
  server.addHook('onSend', (_request, reply, _payload, done) => {
    // Said as late as this, it reaches those who were under way when draining began.
    if (!drain.accepting()) reply.header('Connection', 'close')
    done()
  })
}

// Nobody is there to read it.
const gone = new Fault(refuse('operation_failed', 'The client went away.'))

/** What a client that went away wanted to read is cancelled. What it wanted to write is finished: draining waits for it. */
function finish({ work, row, deadline }: FastifyRequest, reply: FastifyReply, leave: () => void) {
  const end = () => {
    deadline.end()
    leave()
  }
  if (!work) return end()
  work.then(end, end)
  if (!reply.raw.writableFinished && row?.scope.endsWith(':read')) deadline.cancel(gone)
}
