/** Amounts in one process at one time: requests, bytes of request bodies, and connections. */
export type Bounds = { requests: number; bytes: number; connections: number }

/** Why a request is refused. */
export type Reason = 'requests' | 'bytes' | 'slow' | 'busy' | 'connections'

/** The owner of a request: an organization's id, a client's address, or undefined if the token is not cached yet. */
export type Tenant = number | string | undefined

/** An admitted request: its body bytes, and the usage of its tenant. */
export type Admitted = { readonly usage: Usage; readonly bytes: number }

export type Overload = {
  /** Admits a request, or returns the reason for a refusal. */
  enter(tenant: Tenant, bytes: number): Admitted | Reason
  /**
   * Returns the reason to refuse a request and counts the refusal. Returns undefined, and counts nothing, if there is
   * room.
   */
  shed(tenant: Tenant, bytes: number): Reason | undefined
  /** Counts an admitted request out. Must be called once. */
  leave(admitted: Admitted): void
  /**
   * Admits a connection at its first request, or returns the reason for a refusal. The function it returns removes it,
   * once.
   */
  addConnection(tenant: Tenant): (() => void) | Reason
  /**
   * Adjusts the limits. Must be called every {@link tickMs} with the event-loop utilization since then, from 0 to 1.
   */
  tick(utilization: number): void
  /** The usage of all tenants. */
  readonly total: Readonly<Bounds>
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

type Usage = Bounds & {
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
  const { total, usageByTenant, usageOf, add } = createUsages()
  let ticks = 0
  let active = 0

  const isActive = ({ activeAt }: Usage) => ticks - activeAt < activeTicks
  const hasOtherActive = (usage: Usage) => active > (isActive(usage) ? 1 : 0)

  const shed = (usage: Usage, bytes: number) => {
    const reason = findReason(usage, bytes, { bounds, total })
    if (reason) usage.refused += 1
    return reason
  }

  return {
    total,
    shed: (tenant, bytes) => shed(usageOf(tenant), bytes),
    enter: (tenant, bytes) => {
      const usage = usageOf(tenant)
      const reason = shed(usage, bytes)
      if (reason) return reason
      usage.entered += 1
      add(usage, 'requests', 1)
      add(usage, 'bytes', bytes)
      return { usage, bytes }
    },
    leave: ({ usage, bytes }) => {
      add(usage, 'requests', -1)
      add(usage, 'bytes', -bytes)
      usage.answered += 1
      usage.fewest = Math.min(usage.fewest, usage.requests)
    },
    addConnection: tenant => {
      const usage = usageOf(tenant)
      if (usage.connections >= bounds.connections - total.connections) return 'connections'
      add(usage, 'connections', 1)
      let isOpen = true
      return () => {
        if (isOpen) add(usage, 'connections', -1)
        isOpen = false
      }
    },
    tick: utilization => {
      ticks += 1
      // A request without a known tenant may belong to an active one, so it does not count as another active tenant.
      for (const [tenant, usage] of usageByTenant)
        if (tenant !== undefined && usage.entered + usage.requests > 0) usage.activeAt = ticks
      active = [...usageByTenant.values()].filter(isActive).length
      const isSaturated = utilization > saturatedUtilization
      for (const [tenant, usage] of usageByTenant) {
        adjustToLoop(usage, { isSaturated, isAlone: !hasOtherActive(usage), bounds })
        if (ticks % queueTicks > 0) continue
        adjustToQueue(usage)
        if (usage.requests + usage.connections === 0 && usage.maxWhenBusy > bounds.requests)
          usageByTenant.delete(tenant)
      }
    },
  }
}

function findReason(
  usage: Usage,
  bytes: number,
  { bounds, total }: { bounds: Bounds; total: Bounds },
): Reason | undefined {
  if (usage.requests >= bounds.requests - total.requests) return 'requests'
  if (bytes > 0 && usage.bytes >= bounds.bytes - total.bytes) return 'bytes'
  if (usage.requests >= usage.maxWhenSlow) return 'slow'
  return usage.requests >= usage.maxWhenBusy ? 'busy' : undefined
}

/** The usage by tenant and in total. */
function createUsages() {
  const usageByTenant = new Map<Tenant, Usage>()
  const total: Bounds = { requests: 0, bytes: 0, connections: 0 }
  return {
    total,
    usageByTenant,
    usageOf: (tenant: Tenant): Usage => {
      const existing = usageByTenant.get(tenant)
      if (existing) return existing
      const usage = emptyUsage()
      usageByTenant.set(tenant, usage)
      return usage
    },
    add: (usage: Usage, what: keyof Bounds, amount: number) => {
      usage[what] += amount
      total[what] += amount
    },
  }
}

type LoopState = { isSaturated: boolean; isAlone: boolean; bounds: Bounds }

function adjustToLoop(usage: Usage, { isSaturated, isAlone, bounds }: LoopState) {
  const max = Math.min(usage.maxWhenBusy, bounds.requests)
  if (usage.refused > usage.entered) {
    const limit = isSaturated
      ? Math.min(max, usage.requests, maxWhenRefused) * shrinkFactor
      : Math.min(max * growFactor, maxWhenRefused)
    usage.maxWhenBusy = Math.ceil(limit)
  } else if (!isSaturated) usage.maxWhenBusy = Math.ceil(max * growFactor)
  else if (!isAlone) usage.maxWhenBusy = Math.min(max, Math.max(usage.requests, burst))
  usage.maxWhenBusy = Math.max(minWhenBusy, usage.maxWhenBusy)
  usage.entered = 0
  usage.refused = 0
}

function adjustToQueue(usage: Usage) {
  usage.maxWhenSlow = usage.fewest >= minWhenSlow ? Math.max(minWhenSlow, usage.answered) : Infinity
  usage.fewest = usage.requests
  usage.answered = 0
}

const emptyUsage = (): Usage => ({
  requests: 0,
  bytes: 0,
  connections: 0,
  entered: 0,
  refused: 0,
  activeAt: -Infinity,
  answered: 0,
  fewest: 0,
  maxWhenSlow: Infinity,
  maxWhenBusy: Infinity,
})
