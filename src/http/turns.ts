import type { ServerResponse } from 'node:http'
import type { FastifyRequest } from 'fastify'

const last_answers = new WeakMap<FastifyRequest['raw']['socket'], ServerResponse>()

/**
 * Calls back once the request before this one on its connection is done with: Node hands out pipelined requests at once,
 * and RFC 9112 (9.3.2) has them take effect one after the other where one of them writes.
 */
export function awaitTurn({ raw: { socket } }: FastifyRequest, answer: ServerResponse, begin: () => void): void {
  const before = last_answers.get(socket)
  last_answers.set(socket, answer)
  if (!before || before.writableFinished || socket.destroyed) {
    begin()
    return
  }
  const proceed = () => {
    before.off('close', proceed)
    socket.off('close', proceed)
    begin()
  }
  before.once('close', proceed)
  socket.once('close', proceed)
}
