import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Limits } from '../../config.ts'
import { stopParser } from '../server/stop-parser.ts'
import { takeShortcut } from '../shortcut/shortcut.ts'
import { batchScheduler } from './batch-scheduler.ts'
import { drainUnreadBody } from './connection-limits.ts'
import { type ConnectionState, connectionStateKey, type TrackedSocket } from './connection-state.ts'
import type { Overload, Reason } from './overload.ts'
import type { Answerer } from './overload-response.ts'

/** A neighbour's request takes some turns: in each it would wait for all of a thousand refusals of 40 µs, */
const refusalsATurn = 32
/** or of 25 by the shortcut. */
const shortRefusalsATurn = 64

type Refused = { request: IncomingMessage; response: ServerResponse; closing: boolean }

type RefuserOptions = {
  limits: Pick<Limits, 'bodyBytes' | 'requestMs' | 'batchBytes'>
  overload: Pick<Overload, 'refuse'>
  busy: Answerer
  /** Whether connections end with the next answer. */
  isLast: () => boolean
  /** Told of each refusal that nobody else has seen. */
  tell: (reason: Reason) => void
}

/**
 * Refuses by turns. By the end of a turn what was sent together has been read together, a body with its request. What
 * comes by the same connection later is refused by the shortcut, where it may be.
 */
export function loadShedder({ limits, overload, busy, isLast, tell }: RefuserOptions): (refused: Refused) => void {
  const settle = (socket: Socket, kept: ConnectionState) => {
    if (!kept.owed) return
    const text = busy.text(kept.owed.request_id)
    kept.owed = undefined
    if (!socket.writable) return
    kept.unheard += 1
    socket.write(text, 'latin1', () => {
      kept.unheard -= 1
    })
  }
  const settleInTurn = batchScheduler<TrackedSocket>(shortRefusalsATurn, socket =>
    settle(socket, socket[connectionStateKey]!),
  )

  const shorten = (socket: Socket, kept: ConnectionState) =>
    takeShortcut(socket, {
      last: () => kept.last,
      isIdle: () => !kept.owed && kept.places.length + kept.unheard + socket.writableLength === 0,
      answers: whole => {
        if (kept.holder === undefined || whole.authorization !== kept.authorization || isLast()) return false
        const reason = overload.refuse(kept.holder, Math.min(whole.bytes, limits.batchBytes))
        if (!reason) return false
        tell(reason)
        kept.owed = whole
        settleInTurn(socket)
        return true
      },
      settle: () => settle(socket, kept),
    })

  function hear(request: IncomingMessage) {
    const socket: TrackedSocket = request.socket
    const kept = socket[connectionStateKey]
    if (!kept) return
    kept.unheard -= 1
    if (kept.shortened || kept.holder === undefined || isEncrypted(socket)) return
    kept.shortened = true
    setImmediate(() => {
      // While Node waits for the rest of a body, the socket is Node's to pause and to resume.
      if (!request.complete || socket.isPaused() || socket.destroyed) kept.shortened = false
      else shorten(socket, kept)
    })
  }

  const refuseInTurn = batchScheduler<Refused>(refusalsATurn, ({ request, response, closing }) => {
    if (request.socket.destroyed) return
    if (!request.complete) drainUnreadBody(request, limits)
    busy.answer(request, response, { closing: closing || isLast() })
    // TLS tells that an answer has left a turn later, when the client may have come back by it.
    if (isEncrypted(request.socket)) hear(request)
    else response.once('close', () => hear(request))
  })

  return refused => {
    const kept = (refused.request.socket as TrackedSocket)[connectionStateKey]
    if (kept) kept.unheard += 1
    if (refused.closing) stopParser(refused.request.socket)
    refuseInTurn(refused)
  }
}

const isEncrypted = (socket: Socket) => 'encrypted' in socket
