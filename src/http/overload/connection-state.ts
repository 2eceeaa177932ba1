import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Whole } from '../shortcut/complete-request.ts'
import type { Admitted, Overload, Reason } from './overload.ts'

/** A request that was let in by `overload`, and its work from the moment that it has begun. */
export type Slot = {
  inside: Admitted | undefined
  overload: Pick<Overload, 'leave'>
  work: Promise<unknown> | undefined
}

/** A connection by which a request has come. */
export type ConnectionState = {
  /** Gives its place among the connections back; undefined while it has asked nothing below `/v1`. */
  leave: (() => void) | undefined
  /** Whoever came by it and is inside. */
  places: Slot[]
  /** For whom its last request spoke. */
  authorization: string | undefined
  holder: number | undefined
  /** Refusals on their way. */
  unheard: number
  /** Whether refusals come by the shortcut (shortcut.ts), and its last request from then on. */
  shortened: boolean
  last: IncomingMessage | undefined
  /** What was refused by the shortcut and waits for its turn to hear it. */
  owed: Whole | undefined
}

// On the objects themselves: weak maps, looked into some times for each request, cost a GET 2 µs, half of it collecting.
export const slotKey = Symbol('place')
export const connectionStateKey = Symbol('kept')
export type TrackedRequest = IncomingMessage & { [slotKey]?: Slot }
export type TrackedSocket = Socket & { [connectionStateKey]?: ConnectionState }

/** The organization that an Authorization header is known to speak for. */
type Recall = (authorization: string) => number | undefined

/** What is known of a connection, from its first request on. */
export function connectionStateOf(socket: TrackedSocket): ConnectionState {
  const known = socket[connectionStateKey]
  if (known) return known
  const kept: ConnectionState = {
    leave: undefined,
    places: [],
    authorization: undefined,
    holder: undefined,
    unheard: 0,
    shortened: false,
    last: undefined,
    owed: undefined,
  }
  socket[connectionStateKey] = kept
  // An answer that waits for those before it hears nothing of the end of its connection: it is told.
  socket.once('close', () => {
    kept.leave?.()
    for (const place of [...kept.places]) releaseSlot(kept, place, false)
  })
  return kept
}

/** Lets connections stay that ask for something below `/v1`, and knows for whom each spoke last. */
export function admitterOf(overload: Overload, recall: Recall) {
  return (socket: TrackedSocket, authorization: string | undefined): ConnectionState | Reason => {
    const known = socket[connectionStateKey]
    if (known?.holder !== undefined && known.authorization === authorization) return known
    const holder = authorization === undefined ? undefined : recall(authorization)
    if (known?.leave) return Object.assign(known, { authorization, holder })
    const leave = overload.keep(holder)
    if (typeof leave === 'string') return leave
    return Object.assign(connectionStateOf(socket), { authorization, holder, leave })
  }
}

/** Lets a request out, once: with its answer, or where it was not answered, when its work has ended. */
export function releaseSlot({ places }: ConnectionState, place: Slot, answered: boolean): void {
  const { inside, overload, work } = place
  if (!inside) return
  place.inside = undefined
  places.splice(places.indexOf(place), 1)
  const leave = () => overload.leave(inside)
  if (answered || !work) leave()
  else work.then(leave, leave)
}
