import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limits } from '../../config.ts'
import type { Connection } from '../server/connection.ts'
import { stopRequests } from '../server/stop-parser.ts'
import { takeShortcut } from '../shortcut/shortcut.ts'
import { createBatchScheduler } from './batch-scheduler.ts'
import { drainUnreadBody } from './connection-limits.ts'
import type { Overload, Reason } from './overload.ts'
import type { OverloadResponder } from './overload-response.ts'

/**
 * The least number of refusals in an event-loop turn. A refusal takes 40 µs, or 25 µs by the shortcut. A request of
 * another tenant takes several turns, and in each of them it would wait for all refusals of a thousand connections.
 */
const minRefusalsPerTurn = 32
const minShortcutRefusalsPerTurn = 64

type RefusedRequest = {
  connection: Connection
  request: IncomingMessage
  response: ServerResponse
  closing: boolean
}

type LoadShedderOptions = {
  limits: Pick<Limits, 'requestMs' | 'batchBytes'>
  /** Whether the shortcut may refuse later requests of a connection. */
  refusalShortcut: boolean
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
export function createLoadShedder(options: LoadShedderOptions): (refused: RefusedRequest) => void {
  const { limits, refusalShortcut, responder, shouldClose } = options
  const startShortcut = createShortcutStarter(options)

  function finish({ connection, request }: RefusedRequest) {
    connection.pendingRefusals -= 1
    if (connection.newest === request) connection.newest = undefined
    const { socket } = connection
    if (!refusalShortcut || connection.usesShortcut || connection.tenant === undefined || isEncrypted(connection))
      return
    connection.usesShortcut = true
    setImmediate(() => {
      // While Node waits for the rest of a body, Node pauses and resumes the socket.
      if (!request.complete || socket.isPaused() || socket.destroyed) connection.usesShortcut = false
      else startShortcut(connection)
    })
  }

  const schedule = createBatchScheduler<RefusedRequest>(minRefusalsPerTurn, refused => {
    const { connection, request, response, closing } = refused
    if (connection.socket.destroyed) return
    if (!request.complete) drainUnreadBody(request, limits)
    responder.answer(request, response, { closing: closing || shouldClose() })
    // TLS reports that a response was sent one turn later, and the next request may have arrived by then.
    if (isEncrypted(connection)) finish(refused)
    else response.once('close', () => finish(refused))
  })

  return refused => {
    refused.connection.pendingRefusals += 1
    if (refused.closing) stopRequests(refused.connection)
    schedule(refused)
  }
}

/** Returns a function that lets the shortcut refuse the next requests of a connection, while there is a reason to. */
function createShortcutStarter({ limits, overload, responder, shouldClose, report }: LoadShedderOptions) {
  const sendRefusal = (connection: Connection) => {
    const { socket, refusedRequest } = connection
    if (!refusedRequest) return
    connection.refusedRequest = undefined
    if (!socket.writable) return
    socket.write(responder.text(refusedRequest.request_id), 'latin1', () => {
      connection.pendingRefusals -= 1
    })
  }
  const scheduleRefusal = createBatchScheduler<Connection>(minShortcutRefusalsPerTurn, sendRefusal)

  return (connection: Connection) => {
    const { socket } = connection
    takeShortcut(socket, {
      lastRequest: () => connection.newest,
      isIdle: () => connection.unanswered.size + connection.pendingRefusals + socket.writableLength === 0,
      answer: complete => {
        const { tenant, credential } = connection
        if (tenant === undefined || complete.authorization !== credential || shouldClose()) return false
        const reason = overload.shed(tenant, Math.min(complete.bytes, limits.batchBytes))
        if (!reason) return false
        report(reason)
        connection.refusedRequest = complete
        connection.pendingRefusals += 1
        scheduleRefusal(connection)
        return true
      },
      flush: () => sendRefusal(connection),
    })
  }
}

const isEncrypted = ({ socket }: Connection) => 'encrypted' in socket
