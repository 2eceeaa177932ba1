/** Of one process at one time: requests under `/v1`, the bytes of their bodies, and the connections they come by. */
export type Bounds = { requests: number; bytes: number; connections: number }

/** Why somebody is not let in. */
export type Reason = 'requests' | 'bytes' | 'slow' | 'busy' | 'connections'

/** Whose request it is: an organization's id, or undefined of a caller that is not known yet. */
type Holder = number | undefined

export type Overload = {
  /** Lets a request in, or says why not. What it returns lets it out again, once. */
  enter(holder: Holder, bytes: number): (() => void) | Reason
  /** Lets a connection stay, from its first request on, or says why not. What it returns gives it back, once. */
  keep(holder: Holder): (() => void) | Reason
  /** Tells that {@link tick_ms} have passed, and for which part of them the event loop was at work, from 0 to 1. */
  tick(utilization: number): void
  /** What is held in all. */
  readonly held: Readonly<Bounds>
}

/** All that changes with time changes at a tick. */
export const tick_ms = 100

/** So long a request should wait at most: an organization has no more inside than were answered in this time. */
const waiting_ticks = 5
/** So many of an organization are let in however slow they are, */
export const least_when_slow = 64
/** and so many when the event loop has no rest: 64 at a time would keep it as busy as any number. */
export const least_when_busy = 8

const saturated = 0.97
const shrink = 0.5
const grow = 1.1

type Held = Bounds & {
  /** Let in and refused since the last tick. */
  entered: number
  refused: number
  /** Let out, and the fewest inside, since the last look at the queue. */
  answered: number
  least: number
  /** So many may be inside, for the queue's sake and for the event loop's. */
  most_when_slow: number
  most_when_busy: number
}

/**
 * Decides who is let in, by three rules:
 * - Of each of the bounds an organization may hold as much as is left free (Choudhury and Hahne's dynamic threshold): one
 *   alone takes half, and leaves the other half to whoever comes; `n` take the n+1st part each. Nobody has to be told who
 *   else is there.
 * - Where a queue stands, which is to say that an organization never had fewer than {@link least_when_slow} inside for half
 *   a second, it is let have inside what it was answered in that time: so long everybody waits then. A burst passes.
 * - While the event loop has no rest, of an organization that is refused more than it is let in fewer are let in: whoever
 *   is refused shall hear it at once, and saying so takes time, too. Its neighbours are let in as ever.
 */
export function createOverload(bounds: Bounds): Overload {
  const { all, held_by, of, add } = createHoldings()
  let ticks = 0

  function reasonAgainst(held: Held, bytes: number): Reason | undefined {
    if (held.requests >= bounds.requests - all.requests) return 'requests'
    if (bytes > 0 && held.bytes >= bounds.bytes - all.bytes) return 'bytes'
    if (held.requests >= held.most_when_slow) return 'slow'
    return held.requests >= held.most_when_busy ? 'busy' : undefined
  }

  return {
    held: all,
    enter: (holder, bytes) => {
      const held = of(holder)
      const reason = reasonAgainst(held, bytes)
      held[reason ? 'refused' : 'entered'] += 1
      if (reason) return reason
      add(held, 'requests', 1)
      add(held, 'bytes', bytes)
      let inside = true
      return () => {
        if (!inside) return
        inside = false
        add(held, 'requests', -1)
        add(held, 'bytes', -bytes)
        held.answered += 1
        held.least = Math.min(held.least, held.requests)
      }
    },
    keep: holder => {
      const held = of(holder)
      if (held.connections >= bounds.connections - all.connections) return 'connections'
      add(held, 'connections', 1)
      let kept = true
      return () => {
        if (kept) add(held, 'connections', -1)
        kept = false
      }
    },
    tick: utilization => {
      ticks += 1
      for (const [holder, held] of held_by) {
        heedLoop(held, utilization, bounds)
        if (ticks % waiting_ticks > 0) continue
        heedQueue(held)
        if (held.requests + held.connections === 0 && held.most_when_busy > bounds.requests) held_by.delete(holder)
      }
    },
  }
}

/** What everybody holds, and what is held in all. */
function createHoldings() {
  const held_by = new Map<Holder, Held>()
  const all: Bounds = { requests: 0, bytes: 0, connections: 0 }
  return {
    all,
    held_by,
    of: (holder: Holder): Held => {
      const known = held_by.get(holder)
      if (known) return known
      const held = nothingHeld()
      held_by.set(holder, held)
      return held
    },
    add: (held: Held, what: keyof Bounds, amount: number) => {
      held[what] += amount
      all[what] += amount
    },
  }
}

function heedLoop(held: Held, utilization: number, bounds: Bounds) {
  const too_busy = held.refused > held.entered && utilization > saturated
  const most = Math.min(held.most_when_busy, bounds.requests) * (too_busy ? shrink : grow)
  held.most_when_busy = Math.max(least_when_busy, Math.ceil(most))
  held.entered = 0
  held.refused = 0
}

function heedQueue(held: Held) {
  held.most_when_slow = held.least >= least_when_slow ? Math.max(least_when_slow, held.answered) : Infinity
  held.least = held.requests
  held.answered = 0
}

const nothingHeld = (): Held => ({
  requests: 0,
  bytes: 0,
  connections: 0,
  entered: 0,
  refused: 0,
  answered: 0,
  least: 0,
  most_when_slow: Infinity,
  most_when_busy: Infinity,
})
