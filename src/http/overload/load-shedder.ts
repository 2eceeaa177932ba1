import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Limits } from '../../config.ts'
import { stopParser } from '../server/stop-parser.ts'
import { takeShortcut } from '../shortcut/shortcut.ts'
import { createBatchScheduler } from './batch-scheduler.ts'
import { drainUnreadBody } from './connection-limits.ts'
import { type ConnectionState, connectionStateKey, type TrackedSocket } from './connection-state.ts'
import type { Overload, Reason } from './overload.ts'
import type { OverloadResponder } from './overload-response.ts'

/**
 * The least number of refusals in an event-loop turn. A refusal takes 40 µs, or 25 µs by the shortcut. A request of
 * another tenant takes several turns, and in each of them it would wait for all refusals of a thousand connections.
 */
const minRefusalsPerTurn = 32
const minShortcutRefusalsPerTurn = 64

type RefusedRequest = { request: IncomingMessage; response: ServerResponse; closing: boolean }

type LoadShedderOptions = {
  limits: Pick<Limits, 'bodyBytes' | 'requestMs' | 'batchBytes'>
  overload: Pick<Overload, 'shed'>
  responder: OverloadResponder
  /** Whether the next response closes its connection. */
  shouldClose: () => boolean
  /** Called for each refusal by the shortcut, which the gate does not see. */
  report: (reason: Reason) => void
}

/**
 * Returns a function that refuses a request. Refusals are sent in batches, from the end of the event-loop turn: by then
 * kith has read everything that was sent together, a body with its request. Later requests of the same connection are
 * refused by the shortcut if they qualify.
 */
export function createLoadShedder({
  limits,
  overload,
  responder,
  shouldClose,
  report,
}: LoadShedderOptions): (refused: RefusedRequest) => void {
  const sendQueuedRefusal = (socket: Socket, state: ConnectionState) => {
    if (!state.refusedRequest) return
    const text = responder.text(state.refusedRequest.request_id)
    state.refusedRequest = undefined
    if (!socket.writable) return
    state.pendingRefusals += 1
    socket.write(text, 'latin1', () => {
      state.pendingRefusals -= 1
    })
  }
  const scheduleQueuedRefusal = createBatchScheduler<TrackedSocket>(minShortcutRefusalsPerTurn, socket =>
    sendQueuedRefusal(socket, socket[connectionStateKey]!),
  )

  const startShortcut = (socket: Socket, state: ConnectionState) =>
    takeShortcut(socket, {
      lastRequest: () => state.lastRequest,
      isIdle: () => !state.refusedRequest && state.slots.length + state.pendingRefusals + socket.writableLength === 0,
      answer: complete => {
        if (state.tenant === undefined || complete.authorization !== state.authorization || shouldClose()) return false
        const reason = overload.shed(state.tenant, Math.min(complete.bytes, limits.batchBytes))
        if (!reason) return false
        report(reason)
        state.refusedRequest = complete
        scheduleQueuedRefusal(socket)
        return true
      },
      flush: () => sendQueuedRefusal(socket, state),
    })

  function finishRefusal(request: IncomingMessage) {
    const socket: TrackedSocket = request.socket
    const state = socket[connectionStateKey]
    if (!state) return
    state.pendingRefusals -= 1
    if (state.usesShortcut || state.tenant === undefined || isEncrypted(socket)) return
    state.usesShortcut = true
    setImmediate(() => {
      // While Node waits for the rest of a body, Node pauses and resumes the socket.
      if (!request.complete || socket.isPaused() || socket.destroyed) state.usesShortcut = false
      else startShortcut(socket, state)
    })
  }

  const scheduleRefusal = createBatchScheduler<RefusedRequest>(minRefusalsPerTurn, ({ request, response, closing }) => {
    if (request.socket.destroyed) return
    if (!request.complete) drainUnreadBody(request, limits)
    responder.answer(request, response, { closing: closing || shouldClose() })
    // TLS reports that a response was sent one turn later, and the next request may have arrived by then.
    if (isEncrypted(request.socket)) finishRefusal(request)
    else response.once('close', () => finishRefusal(request))
  })

  return refused => {
    const state = (refused.request.socket as TrackedSocket)[connectionStateKey]
    if (state) state.pendingRefusals += 1
    if (refused.closing) stopParser(refused.request.socket)
    scheduleRefusal(refused)
  }
}

const isEncrypted = (socket: Socket) => 'encrypted' in socket
