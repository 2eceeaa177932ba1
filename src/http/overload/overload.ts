import { FairPool, type Release } from '../../fair-pool.ts'

/** Amounts in one process at one time: requests, bytes of request bodies, and connections. */
export type Bounds = { requests: number; bytes: number; connections: number }

/** Why a request is refused. */
export type Reason = 'requests' | 'bytes' | 'slow' | 'busy' | 'connections'

/** The owner of a request: an organization's id, a client's address, or undefined if the token is not cached yet. */
export type Tenant = number | string | undefined

export type Overload = {
  /** Admits a request, or returns the reason for a refusal. The function that it returns counts the request out, once. */
  enter(tenant: Tenant, bytes: number): Release | Reason
  /**
   * Returns the reason to refuse a request and counts the refusal. Returns undefined, and counts nothing, if there is
   * room.
   */
  shed(tenant: Tenant, bytes: number): Reason | undefined
  /** Admits a connection at its first request, or returns the reason for a refusal. The function that it returns removes it. */
  addConnection(tenant: Tenant): Release | Reason
  /**
   * Adjusts the limits. Must be called every {@link tickMs} with the event-loop utilization since then, from 0 to 1.
   */
  tick(utilization: number): void
  /** Returns the amounts of all tenants. */
  held(): Bounds
}

/** The limits change only at a tick. */
export const tickMs = 50

/**
 * A request should wait for at most ten ticks: an organization has at most as many under way as were answered in that
 * time.
 */
const queueTicks = 10
/** The lowest limit of an organization with slow requests. */
export const minWhenSlow = 64
/**
 * The lowest limit of an organization while the event loop is saturated. With 2, a storm got 114 to 500 answers a
 * second; with 8, it got 350 to 900. With 24, the refusals fell behind and arrived after six seconds.
 */
export const minWhenBusy = 8
/**
 * The limit of a mostly refused organization. 64 requests at a time have the throughput of 500, with a shorter wait.
 */
export const maxWhenRefused = 64
/** A tenant is active for this many ticks after its last request. */
const activeTicks = 4
/**
 * The limit while the event loop is saturated and other tenants are active. With 64, two to a hundred requests were
 * refused beside half of the maximum load. A limit that applied only after 150 ms of saturation let a storm have 500
 * under way.
 */
export const burst = 256

const saturatedUtilization = 0.97
const shrinkFactor = 0.4
const growFactor = 1.1

type Usage = {
  /** Requests admitted and refused since the last tick. */
  entered: number
  refused: number
  /** The last tick at which the tenant had a request. */
  activeAt: number
  /** Requests answered, and the fewest under way, since the last check of the queue. */
  answered: number
  fewest: number
  /** The limits of requests under way, by the length of the queue and by the load of the event loop. */
  maxWhenSlow: number
  maxWhenBusy: number
}

/**
 * Decides which requests are admitted, by four rules:
 * - An organization may use as much of each bound as is left free (the dynamic threshold of Choudhury and Hahne). One
 *   organization alone takes half and leaves the other half free; `n` organizations take 1/(n+1) each. The rule needs
 *   no knowledge of the other tenants.
 * - If an organization has a queue, its limit is what was answered in half a second, so that each request waits for
 *   about that long. A queue means at least {@link minWhenSlow} requests under way for the whole half second. A short
 *   burst is none.
 * - An organization with more refused than admitted requests has at most {@link maxWhenRefused} under way.
 * - While the event loop is saturated, the limit of such an organization shrinks, because a refusal must be sent at
 *   once and sending takes time too. If other tenants are active, no other organization grows past a {@link burst},
 *   because those tenants would wait for all of it.
 */
export function createOverload(bounds: Bounds): Overload {
  const poolOf = (max: number) => new FairPool<Tenant>({ max, leavesRoom: true })
  const [requests, bodies, connections] = [poolOf(bounds.requests), poolOf(bounds.bytes), poolOf(bounds.connections)]
  const usages = new Map<Tenant, Usage>()
  let ticks = 0
  let active = 0

  const isActive = ({ activeAt }: Usage) => ticks - activeAt < activeTicks
  const hasOtherActive = (usage: Usage) => active > (isActive(usage) ? 1 : 0)

  const usageOf = (tenant: Tenant): Usage => {
    const existing = usages.get(tenant)
    if (existing) return existing
    const usage = emptyUsage()
    usages.set(tenant, usage)
    return usage
  }

  const findReason = (tenant: Tenant, { maxWhenSlow, maxWhenBusy }: Usage, bytes: number): Reason | undefined => {
    if (!requests.hasRoom(tenant)) return 'requests'
    if (bytes > 0 && !bodies.hasRoom(tenant)) return 'bytes'
    const underWay = requests.heldBy(tenant)
    if (underWay >= maxWhenSlow) return 'slow'
    return underWay >= maxWhenBusy ? 'busy' : undefined
  }

  const shed = (tenant: Tenant, bytes: number): Reason | undefined => {
    const usage = usageOf(tenant)
    const reason = findReason(tenant, usage, bytes)
    if (reason) usage.refused += 1
    return reason
  }

  return {
    held: () => ({ requests: requests.held, bytes: bodies.held, connections: connections.held }),
    shed,
    enter: (tenant, bytes) => {
      const reason = shed(tenant, bytes)
      if (reason) return reason
      const usage = usageOf(tenant)
      usage.entered += 1
      const leave = requests.tryTake(tenant)!
      const release = bytes > 0 ? bodies.tryTake(tenant, bytes) : undefined
      return () => {
        leave()
        release?.()
        usage.answered += 1
        usage.fewest = Math.min(usage.fewest, requests.heldBy(tenant))
      }
    },
    addConnection: tenant => connections.tryTake(tenant) ?? 'connections',
    tick: utilization => {
      ticks += 1
      // A request without a known tenant may belong to an active one, so it does not count as another active tenant.
      for (const [tenant, usage] of usages)
        if (tenant !== undefined && usage.entered + requests.heldBy(tenant) > 0) usage.activeAt = ticks
      active = [...usages.values()].filter(isActive).length
      const isSaturated = utilization > saturatedUtilization
      for (const [tenant, usage] of usages) {
        const underWay = requests.heldBy(tenant)
        const isAlone = !hasOtherActive(usage)
        adjustToLoop(usage, { underWay, isSaturated, isAlone, maxRequests: bounds.requests })
        if (ticks % queueTicks > 0) continue
        adjustToQueue(usage, underWay)
        if (underWay + connections.heldBy(tenant) === 0 && usage.maxWhenBusy > bounds.requests) usages.delete(tenant)
      }
    },
  }
}

type LoopState = { underWay: number; isSaturated: boolean; isAlone: boolean; maxRequests: number }

function adjustToLoop(usage: Usage, { underWay, isSaturated, isAlone, maxRequests }: LoopState) {
  const max = Math.min(usage.maxWhenBusy, maxRequests)
  if (usage.refused > usage.entered) {
    const limit = isSaturated
      ? Math.min(max, underWay, maxWhenRefused) * shrinkFactor
      : Math.min(max * growFactor, maxWhenRefused)
    usage.maxWhenBusy = Math.ceil(limit)
  } else if (!isSaturated) usage.maxWhenBusy = Math.ceil(max * growFactor)
  else if (!isAlone) usage.maxWhenBusy = Math.min(max, Math.max(underWay, burst))
  usage.maxWhenBusy = Math.max(minWhenBusy, usage.maxWhenBusy)
  usage.entered = 0
  usage.refused = 0
}

function adjustToQueue(usage: Usage, underWay: number) {
  usage.maxWhenSlow = usage.fewest >= minWhenSlow ? Math.max(minWhenSlow, usage.answered) : Infinity
  usage.fewest = underWay
  usage.answered = 0
}

const emptyUsage = (): Usage => ({
  entered: 0,
  refused: 0,
  activeAt: -Infinity,
  answered: 0,
  fewest: 0,
  maxWhenSlow: Infinity,
  maxWhenBusy: Infinity,
})
