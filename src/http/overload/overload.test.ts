import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  burst,
  createOverload,
  maxWhenRefused,
  minWhenBusy,
  minWhenSlow,
  type Overload,
  type Tenant,
  tickMs,
} from './overload.ts'

type Leave = () => void

const wide = { requests: 1_000, bytes: 1_000_000, connections: 1_000 }

/** Fills a tenant's limit with requests. */
function fill(overload: Overload, tenant: Tenant, bytes = 0): Leave[] {
  const admitted: Leave[] = []
  for (;;) {
    const leave = overload.enter(tenant, bytes)
    if (typeof leave === 'string') return admitted
    admitted.push(leave)
  }
}

const tickOften = (overload: Overload, times: number, utilization = 0.5) => {
  for (let index = 0; index < times; index += 1) overload.tick(utilization)
}

describe('admission', () => {
  it('gives one organization half and leaves room for the next', () => {
    const overload = createOverload(wide)
    expect(fill(overload, 1)).toHaveLength(500)
    expect(fill(overload, 2)).toHaveLength(250)
    expect(overload.enter(3, 0)).toBeTypeOf('function')
  })

  it('admits as many requests as were answered', () => {
    const overload = createOverload(wide)
    const [first, second] = fill(overload, 1)
    first!()
    second!()
    expect(fill(overload, 1)).toHaveLength(2)
  })

  it('admits a body larger than the limit alone and refuses another body meanwhile', () => {
    const overload = createOverload(wide)
    const leave = overload.enter(1, 5_000_000)
    expect(leave).toBeTypeOf('function')
    expect(overload.enter(1, 1)).toBe('bytes')
    expect(overload.enter(1, 0)).toBeTypeOf('function')
    ;(leave as Leave)()
    expect(overload.enter(1, 1)).toBeTypeOf('function')
  })

  it('leaves room for the connections of another organization', () => {
    const overload = createOverload(wide)
    const connections = Array.from({ length: 500 }, () => overload.addConnection(1))
    expect(connections.every(close => typeof close === 'function')).toBe(true)
    expect(overload.addConnection(1)).toBe('connections')
    expect(overload.addConnection(2)).toBeTypeOf('function')
    ;(connections[0] as Leave)()
    expect(overload.addConnection(1)).toBeTypeOf('function')
  })
})

describe('an organization with a queue', () => {
  it('has at most as many requests under way as were answered in half a second', () => {
    const overload = createOverload(wide)
    const underWay = fill(overload, 1)
    tickOften(overload, 500 / tickMs)
    for (const leave of underWay.splice(0, 100)) leave()
    tickOften(overload, 500 / tickMs)
    expect(overload.enter(1, 0)).toBe('slow')
    for (const leave of underWay.splice(0, 301)) leave()
    expect(overload.enter(1, 0)).toBeTypeOf('function')
    expect(overload.enter(1, 0)).toBe('slow')
    expect(overload.enter(2, 0)).toBeTypeOf('function')
  })

  it('keeps a minimum however slow its requests are, and a short burst is not a queue', () => {
    const overload = createOverload(wide)
    for (let index = 0; index < minWhenSlow - 1; index += 1) overload.enter(1, 0)
    tickOften(overload, 2_000 / tickMs)
    const leaves = fill(overload, 1)
    expect(leaves).toHaveLength(500 - minWhenSlow + 1)
    tickOften(overload, 400 / tickMs)
    for (const leave of leaves) leave()
    tickOften(overload, 600 / tickMs)
    expect(fill(overload, 1)).toHaveLength(500 - minWhenSlow + 1)
  })
})

describe('an organization that is mostly refused', () => {
  it('has a limit of its own even on an idle event loop, and its neighbours keep their share', () => {
    const overload = createOverload(wide)
    const underWay = fill(overload, 1)
    for (let more = 0; more <= underWay.length; more += 1) overload.enter(1, 0)
    for (const leave of underWay) leave()
    tickOften(overload, 1)
    expect(fill(overload, 1)).toHaveLength(maxWhenRefused)
    expect(overload.enter(1, 0)).toBe('busy')
    expect(fill(overload, 2).length).toBeGreaterThan(400)
  })

  it('is refused by shed without using its share, and recovers once it is mostly admitted', () => {
    const overload = createOverload(wide)
    const underWay = fill(overload, 1)
    for (let more = 0; more <= underWay.length; more += 1) expect(overload.shed(1, 0)).toBe('requests')
    expect(overload.held().requests).toBe(underWay.length)
    for (const leave of underWay) leave()
    tickOften(overload, 1)
    expect(overload.shed(1, 0)).toBe(undefined)
    expect(overload.held().requests).toBe(0)
    tickOften(overload, 3_000 / tickMs)
    expect(fill(overload, 1)).toHaveLength(500)
  })
})

describe('while the event loop is saturated', () => {
  /** One organization sends more than twice the requests that are admitted. */
  const storm = (overload: Overload, ticks: number) => {
    for (let tick = 0; tick < ticks; tick += 1) {
      const underWay = fill(overload, 1)
      for (let more = 0; more <= underWay.length; more += 1) overload.enter(1, 0)
      for (const leave of underWay) leave()
      overload.tick(1)
    }
  }

  it('shrinks the limit of a mostly refused organization and not that of its neighbours', () => {
    const overload = createOverload(wide)
    storm(overload, 30)
    expect(fill(overload, 1)).toHaveLength(minWhenBusy)
    expect(overload.enter(1, 0)).toBe('busy')
    expect(fill(overload, 2).length).toBeGreaterThan(400)
  })

  it('admits at most a burst of one organization while others are active', () => {
    const overload = createOverload(wide)
    const [mine] = [1, 2].map(tenant => overload.enter(tenant, 0))
    for (let index = 0; index < burst; index += 1) overload.enter(1, 0)
    overload.tick(1)
    expect(overload.enter(1, 0)).toBe('busy')
    expect(overload.enter(2, 0)).toBeTypeOf('function')
    ;(mine as Leave)()
    expect(overload.enter(1, 0)).toBeTypeOf('function')
  })

  it('does not count unauthenticated requests as another active tenant', () => {
    const overload = createOverload(wide)
    for (const tenant of [1, undefined]) overload.enter(tenant, 0)
    overload.tick(1)
    expect(fill(overload, 1).length).toBeGreaterThan(400)
  })

  it('raises the limit again once the event loop is idle', () => {
    const overload = createOverload(wide)
    storm(overload, 30)
    tickOften(overload, 6_000 / tickMs)
    expect(fill(overload, 1)).toHaveLength(500)
  })
})

type Step = { tenant: number; bytes: number } | { leave: number } | { utilization: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ tenant: fc.integer({ min: 0, max: 3 }), bytes: fc.integer({ min: 0, max: 400 }) }),
  },
  { weight: 3, arbitrary: fc.record({ leave: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ utilization: fc.double({ min: 0, max: 1, noNaN: true }) }) },
)

it('keeps its bounds, admits a newcomer and ends empty for any sequence of requests', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), fc.integer({ min: 1, max: 40 }), (steps, requests) => {
      const bounds = { requests, bytes: 1_000, connections: 10 }
      const overload = createOverload(bounds)
      const underWay: Leave[] = []
      for (const step of steps) {
        if ('utilization' in step) overload.tick(step.utilization)
        else if ('leave' in step) underWay.splice(step.leave % (underWay.length + 1), 1)[0]?.()
        else {
          const leave = overload.enter(step.tenant, step.bytes)
          if (typeof leave === 'function') underWay.push(leave)
        }
        expect(overload.held().requests).toBe(underWay.length)
        expect(underWay.length).toBeLessThanOrEqual(requests)
        // Each of four tenants may exceed the bound by its last body.
        expect(overload.held().bytes).toBeLessThan(bounds.bytes + 4 * 400)
        if (overload.held().requests < requests) {
          const newcomer = overload.enter(99, 0)
          expect(newcomer).toBeTypeOf('function')
          ;(newcomer as Leave)()
        }
      }
      for (const leave of underWay) leave()
      expect(overload.held()).toEqual({ requests: 0, bytes: 0, connections: 0 })
    }),
  )
})
