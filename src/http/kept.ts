import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Inside, Overload, Reason } from './overload.ts'
import type { Whole } from './whole.ts'

/** A request that was let in, and its work from the moment that it has begun. */
export type Place = { inside: Inside | undefined; work: Promise<unknown> | undefined }

/** A connection that may stay. */
export type Kept = {
  /** Whoever came by it and is inside. */
  places: Place[]
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
export const place_of = Symbol('place')
export const kept_of = Symbol('kept')
export type Placed = IncomingMessage & { [place_of]?: Place }
export type Known = Socket & { [kept_of]?: Kept }

/** The organization that an Authorization header is known to speak for. */
type Recall = (authorization: string) => number | undefined

type Finish = (kept: Kept, place: Place, answered: boolean) => void

/** Lets connections stay, and knows of each who came by it and is inside. */
export function keeperOf(overload: Overload, recall: Recall, finish: Finish) {
  return (socket: Known, authorization: string | undefined): Kept | Reason => {
    const known = socket[kept_of]
    if (known?.holder !== undefined && known.authorization === authorization) return known
    const holder = authorization === undefined ? undefined : recall(authorization)
    if (known) return Object.assign(known, { authorization, holder })
    const leave = overload.keep(holder)
    if (typeof leave === 'string') return leave
    const kept: Kept = {
      places: [],
      authorization,
      holder,
      unheard: 0,
      shortened: false,
      last: undefined,
      owed: undefined,
    }
    socket[kept_of] = kept
    // An answer that waits for those before it hears nothing of the end of its connection: it is told.
    socket.once('close', () => {
      leave()
      for (const place of [...kept.places]) finish(kept, place, false)
    })
    return kept
  }
}

/** Lets a request out, once: with its answer, or where it was not answered, when its work has ended. */
export function finisherOf(overload: Overload): Finish {
  return ({ places }, place, answered) => {
    const { inside, work } = place
    if (!inside) return
    place.inside = undefined
    places.splice(places.indexOf(place), 1)
    if (answered || !work) return overload.leave(inside)
    const leave = () => overload.leave(inside)
    work.then(leave, leave)
  }
}
