/** Of one process at one time: requests, the bytes of their bodies, and the connections they come by. */
export type Bounds = { requests: number; bytes: number; connections: number }

/** Why somebody is not let in. */
export type Reason = 'requests' | 'bytes' | 'slow' | 'busy' | 'connections'

/** Whose request it is: an organization's id, a client's address, or undefined of a caller that is not known yet. */
export type Tenant = number | string | undefined

/** A request that has been let in, and what it holds. */
export type Admitted = { readonly held: Held; readonly bytes: number }

export type Overload = {
  /** Lets a request in, or says why not. */
  enter(holder: Tenant, bytes: number): Admitted | Reason
  /** Says why one would not be let in, who is refused then; else nothing has happened. */
  refuse(holder: Tenant, bytes: number): Reason | undefined
  /** Lets one out that was let in; to be called once. */
  leave(inside: Admitted): void
  /** Lets a connection stay, from its first request on, or says why not. What it returns gives it back, once. */
  keep(holder: Tenant): (() => void) | Reason
  /** Tells that {@link tickMs} have passed, and for which part of them the event loop was at work, from 0 to 1. */
  tick(utilization: number): void
  /** What is held in all. */
  readonly held: Readonly<Bounds>
}

/** All that changes with time changes at a tick. */
export const tickMs = 50

/** So long a request should wait at most: an organization has no more inside than were answered in this time. */
const waitingTicks = 10
/** So many of an organization are let in however slow they are, */
export const leastWhenSlow = 64
/** and so many when the event loop has no rest: with 2, a storm was answered 114 to 500 a second, with 8 350 to 900;
 * with 24 refusals fell behind, and came after six seconds. */
export const leastWhenBusy = 8
/** So many at a time are answered as many a second as 500 would be, in batches that nobody waits for as long. */
export const enough = 64
/** Whoever had something to do within this time is there. */
const companyTicks = 4
/**
 * So many requests may come at once. With 64, two to a hundred were refused beside half of the maximum; without a bound
 * until the loop had had no rest for 150 ms, a storm had 500 inside by then.
 */
export const burst = 256

const saturated = 0.97
const shrink = 0.4
const grow = 1.1

type Held = Bounds & {
  /** Let in and refused since the last tick. */
  entered: number
  refused: number
  /** The last tick at which it had something to do. */
  activeAt: number
  /** Let out, and the fewest inside, since the last look at the queue. */
  answered: number
  least: number
  /** So many may be inside, for the queue's sake and for the event loop's. */
  mostWhenSlow: number
  mostWhenBusy: number
}

/**
 * Decides who is let in, by four rules:
 * - Of each of the bounds an organization may hold as much as is left free (Choudhury and Hahne's dynamic threshold): one
 *   alone takes half, and leaves the other half to whoever comes; `n` take the n+1st part each. Nobody has to be told who
 *   else is there.
 * - Where a queue stands, which is to say that an organization never had fewer than {@link leastWhenSlow} inside for half
 *   a second, it is let have inside what it was answered in that time: so long everybody waits then. A burst passes.
 * - Of an organization that is refused more than it is let in no more are inside than {@link enough}.
 * - While the event loop has no rest, of such an organization fewer are let in: whoever is refused shall hear it at once,
 *   and saying so takes time, too. Where there are others, who would wait for all of it, nobody comes to have more inside
 *   than a {@link burst} then.
 */
export function createOverload(bounds: Bounds): Overload {
  const { all, heldBy, of, add } = createHoldings()
  let ticks = 0
  let active = 0

  const isActive = ({ activeAt }: Held) => ticks - activeAt < companyTicks
  const hasCompany = (held: Held) => active > (isActive(held) ? 1 : 0)

  const refuse = (held: Held, bytes: number) => {
    const reason = reasonAgainst(held, bytes, { bounds, all })
    if (reason) held.refused += 1
    return reason
  }

  return {
    held: all,
    refuse: (holder, bytes) => refuse(of(holder), bytes),
    enter: (holder, bytes) => {
      const held = of(holder)
      const reason = refuse(held, bytes)
      if (reason) return reason
      held.entered += 1
      add(held, 'requests', 1)
      add(held, 'bytes', bytes)
      return { held, bytes }
    },
    leave: ({ held, bytes }) => {
      add(held, 'requests', -1)
      add(held, 'bytes', -bytes)
      held.answered += 1
      held.least = Math.min(held.least, held.requests)
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
      // Whoever is not known may be anybody, also one of those who are: nobody's company.
      for (const [holder, held] of heldBy)
        if (holder !== undefined && held.entered + held.requests > 0) held.activeAt = ticks
      active = [...heldBy.values()].filter(isActive).length
      for (const [holder, held] of heldBy) {
        heedLoop(held, { restless: utilization > saturated, alone: !hasCompany(held), bounds })
        if (ticks % waitingTicks > 0) continue
        heedQueue(held)
        if (held.requests + held.connections === 0 && held.mostWhenBusy > bounds.requests) heldBy.delete(holder)
      }
    },
  }
}

function reasonAgainst(
  held: Held,
  bytes: number,
  { bounds, all }: { bounds: Bounds; all: Bounds },
): Reason | undefined {
  if (held.requests >= bounds.requests - all.requests) return 'requests'
  if (bytes > 0 && held.bytes >= bounds.bytes - all.bytes) return 'bytes'
  if (held.requests >= held.mostWhenSlow) return 'slow'
  return held.requests >= held.mostWhenBusy ? 'busy' : undefined
}

/** What everybody holds, and what is held in all. */
function createHoldings() {
  const heldBy = new Map<Tenant, Held>()
  const all: Bounds = { requests: 0, bytes: 0, connections: 0 }
  return {
    all,
    heldBy,
    of: (holder: Tenant): Held => {
      const known = heldBy.get(holder)
      if (known) return known
      const held = nothingHeld()
      heldBy.set(holder, held)
      return held
    },
    add: (held: Held, what: keyof Bounds, amount: number) => {
      held[what] += amount
      all[what] += amount
    },
  }
}

type Moment = { restless: boolean; alone: boolean; bounds: Bounds }

function heedLoop(held: Held, { restless, alone, bounds }: Moment) {
  const most = Math.min(held.mostWhenBusy, bounds.requests)
  if (held.refused > held.entered) {
    const room = restless ? Math.min(most, held.requests, enough) * shrink : Math.min(most * grow, enough)
    held.mostWhenBusy = Math.ceil(room)
  } else if (!restless) held.mostWhenBusy = Math.ceil(most * grow)
  else if (!alone) held.mostWhenBusy = Math.min(most, Math.max(held.requests, burst))
  held.mostWhenBusy = Math.max(leastWhenBusy, held.mostWhenBusy)
  held.entered = 0
  held.refused = 0
}

function heedQueue(held: Held) {
  held.mostWhenSlow = held.least >= leastWhenSlow ? Math.max(leastWhenSlow, held.answered) : Infinity
  held.least = held.requests
  held.answered = 0
}

const nothingHeld = (): Held => ({
  requests: 0,
  bytes: 0,
  connections: 0,
  entered: 0,
  refused: 0,
  activeAt: -Infinity,
  answered: 0,
  least: 0,
  mostWhenSlow: Infinity,
  mostWhenBusy: Infinity,
})
