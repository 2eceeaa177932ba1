import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { CompleteRequest } from '../shortcut/complete-request.ts'
import type { Admitted, Overload, Reason } from './overload.ts'

/**
 * The place of an admitted request. `admitted` is undefined once it is released; `work` is set when the work starts.
 */
export type Slot = {
  admitted: Admitted | undefined
  overload: Pick<Overload, 'leave'>
  work: Promise<unknown> | undefined
}

/** The state of a connection that has sent a request. */
export type ConnectionState = {
  /** Gives back the connection's place in the limit; undefined until it sends a request below `/v1`. */
  leave: (() => void) | undefined
  /** The slots of its admitted requests. */
  slots: Slot[]
  /** The Authorization header of its last request, and the organization that it belongs to. */
  authorization: string | undefined
  tenant: number | undefined
  /** 503 responses that are queued or not sent completely. */
  pendingRefusals: number
  /** Whether the shortcut sends 503 responses (shortcut.ts), and the last request of Node's parser since then. */
  usesShortcut: boolean
  lastRequest: IncomingMessage | undefined
  /** A request that the shortcut refused and that waits for its 503 response. */
  refusedRequest: CompleteRequest | undefined
}

// The state is on the objects themselves. Weak maps, read several times a request, cost a GET 2 µs, half of it garbage
// collection.
export const slotKey = Symbol('slot')
export const connectionStateKey = Symbol('connection state')
export type TrackedRequest = IncomingMessage & { [slotKey]?: Slot }
export type TrackedSocket = Socket & { [connectionStateKey]?: ConnectionState }

/** The cached organization of an Authorization header. */
type Recall = (authorization: string) => number | undefined

/** The state of a connection, which is made at its first request. */
export function connectionStateOf(socket: TrackedSocket): ConnectionState {
  const existing = socket[connectionStateKey]
  if (existing) return existing
  const state: ConnectionState = {
    leave: undefined,
    slots: [],
    authorization: undefined,
    tenant: undefined,
    pendingRefusals: 0,
    usesShortcut: false,
    lastRequest: undefined,
    refusedRequest: undefined,
  }
  socket[connectionStateKey] = state
  // A response that waits for earlier ones does not emit `close` when its connection closes, so its slot is released
  // here.
  socket.once('close', () => {
    state.leave?.()
    for (const slot of [...state.slots]) releaseSlot(state, slot, false)
  })
  return state
}

/**
 * Returns a function that admits the connection of a request below `/v1` and notes the organization of the request. It
 * returns the connection's state, or the reason for a refusal.
 */
export function createConnectionAdmission(overload: Overload, recall: Recall) {
  return (socket: TrackedSocket, authorization: string | undefined): ConnectionState | Reason => {
    const existing = socket[connectionStateKey]
    if (existing?.tenant !== undefined && existing.authorization === authorization) return existing
    const tenant = authorization === undefined ? undefined : recall(authorization)
    if (existing?.leave) return Object.assign(existing, { authorization, tenant })
    const leave = overload.addConnection(tenant)
    if (typeof leave === 'string') return leave
    return Object.assign(connectionStateOf(socket), { authorization, tenant, leave })
  }
}

/** Releases a request's slot, once: with its response or, if it was not answered, when its work ends. */
export function releaseSlot({ slots }: ConnectionState, slot: Slot, isAnswered: boolean): void {
  const { admitted, overload, work } = slot
  if (!admitted) return
  slot.admitted = undefined
  slots.splice(slots.indexOf(slot), 1)
  const leave = () => overload.leave(admitted)
  if (isAnswered || !work) leave()
  else work.then(leave, leave)
}
