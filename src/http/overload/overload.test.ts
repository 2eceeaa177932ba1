import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  burst,
  createOverload,
  enough,
  leastWhenBusy,
  leastWhenSlow,
  type Overload,
  type Reason,
  tickMs,
} from './overload.ts'

type Leave = () => void

const wide = { requests: 1_000, bytes: 1_000_000, connections: 1_000 }

/** Lets in as many of a holder as it may have. */
type Holder = number | undefined

function fill(overload: Overload, holder: Holder, bytes = 0): Leave[] {
  const inside: Leave[] = []
  for (;;) {
    const leave = enter(overload, holder, bytes)
    if (typeof leave === 'string') return inside
    inside.push(leave)
  }
}

/** Lets one in, or says why not; what it returns lets it out again. */
function enter(overload: Overload, holder: Holder, bytes: number): Leave | Reason {
  const entered = overload.enter(holder, bytes)
  return typeof entered === 'string' ? entered : () => overload.leave(entered)
}

const tickOften = (overload: Overload, times: number, utilization = 0.5) => {
  for (let index = 0; index < times; index += 1) overload.tick(utilization)
}

describe('who is let in', () => {
  it('one organization alone has half, and whoever comes next finds room', () => {
    const overload = createOverload(wide)
    expect(fill(overload, 1)).toHaveLength(500)
    expect(fill(overload, 2)).toHaveLength(250)
    expect(enter(overload, 3, 0)).toBeTypeOf('function')
  })

  it('as many as are let out come in again', () => {
    const overload = createOverload(wide)
    const [first, second] = fill(overload, 1)
    first!()
    second!()
    expect(fill(overload, 1)).toHaveLength(2)
  })

  it('a body that is large is let in alone, and another has to wait for it', () => {
    const overload = createOverload(wide)
    const leave = enter(overload, 1, 5_000_000)
    expect(leave).toBeTypeOf('function')
    expect(enter(overload, 1, 1)).toBe('bytes')
    expect(enter(overload, 1, 0)).toBeTypeOf('function')
    ;(leave as Leave)()
    expect(enter(overload, 1, 1)).toBeTypeOf('function')
  })

  it('the connections of one organization leave room for those of another', () => {
    const overload = createOverload(wide)
    const kept = Array.from({ length: 500 }, () => overload.keep(1))
    expect(kept.every(give => typeof give === 'function')).toBe(true)
    expect(overload.keep(1)).toBe('connections')
    expect(overload.keep(2)).toBeTypeOf('function')
    ;(kept[0] as Leave)()
    expect(overload.keep(1)).toBeTypeOf('function')
  })
})

describe('where a queue stands', () => {
  it('no more are inside than were answered in half a second', () => {
    const overload = createOverload(wide)
    const inside = fill(overload, 1)
    tickOften(overload, 500 / tickMs)
    for (const leave of inside.splice(0, 100)) leave()
    tickOften(overload, 500 / tickMs)
    expect(enter(overload, 1, 0)).toBe('slow')
    for (const leave of inside.splice(0, 301)) leave()
    expect(enter(overload, 1, 0)).toBeTypeOf('function')
    expect(enter(overload, 1, 0)).toBe('slow')
    expect(enter(overload, 2, 0)).toBeTypeOf('function')
  })

  it('a few are let in however slow they are, and a burst that passes is no queue', () => {
    const overload = createOverload(wide)
    for (let index = 0; index < leastWhenSlow - 1; index += 1) enter(overload, 1, 0)
    tickOften(overload, 2_000 / tickMs)
    const burst = fill(overload, 1)
    expect(burst).toHaveLength(500 - leastWhenSlow + 1)
    tickOften(overload, 400 / tickMs)
    for (const leave of burst) leave()
    tickOften(overload, 600 / tickMs)
    expect(fill(overload, 1)).toHaveLength(500 - leastWhenSlow + 1)
  })
})

describe('an organization that is mostly refused', () => {
  it('has no more inside than serves it, though the event loop rests, and its neighbours as many as ever', () => {
    const overload = createOverload(wide)
    const inside = fill(overload, 1)
    for (let more = 0; more <= inside.length; more += 1) enter(overload, 1, 0)
    for (const leave of inside) leave()
    tickOften(overload, 1)
    expect(fill(overload, 1)).toHaveLength(enough)
    expect(enter(overload, 1, 0)).toBe('busy')
    expect(fill(overload, 2).length).toBeGreaterThan(400)
  })

  it('is told so without having come, and is let in as ever once it is mostly let in', () => {
    const overload = createOverload(wide)
    const inside = fill(overload, 1)
    for (let more = 0; more <= inside.length; more += 1) expect(overload.refuse(1, 0)).toBe('requests')
    expect(overload.held.requests).toBe(inside.length)
    for (const leave of inside) leave()
    tickOften(overload, 1)
    expect(overload.refuse(1, 0)).toBe(undefined)
    expect(overload.held.requests).toBe(0)
    tickOften(overload, 3_000 / tickMs)
    expect(fill(overload, 1)).toHaveLength(500)
  })
})

describe('while the event loop has no rest', () => {
  /** An organization that comes far more often than it is let in. */
  const storm = (overload: Overload, ticks: number) => {
    for (let tick = 0; tick < ticks; tick += 1) {
      const inside = fill(overload, 1)
      for (let more = 0; more <= inside.length; more += 1) enter(overload, 1, 0)
      for (const leave of inside) leave()
      overload.tick(1)
    }
  }

  it('fewer and fewer of whoever is mostly refused are let in, and its neighbours as ever', () => {
    const overload = createOverload(wide)
    storm(overload, 30)
    expect(fill(overload, 1)).toHaveLength(leastWhenBusy)
    expect(enter(overload, 1, 0)).toBe('busy')
    expect(fill(overload, 2).length).toBeGreaterThan(400)
  })

  it('nobody comes to have more than a burst where others have something to do', () => {
    const overload = createOverload(wide)
    const [mine] = [1, 2].map(holder => enter(overload, holder, 0))
    for (let index = 0; index < burst; index += 1) enter(overload, 1, 0)
    overload.tick(1)
    expect(enter(overload, 1, 0)).toBe('busy')
    expect(enter(overload, 2, 0)).toBeTypeOf('function')
    ;(mine as Leave)()
    expect(enter(overload, 1, 0)).toBeTypeOf('function')
  })

  it('whoever is not known is nobody’s company', () => {
    const overload = createOverload(wide)
    for (const holder of [1, undefined]) enter(overload, holder, 0)
    overload.tick(1)
    expect(fill(overload, 1).length).toBeGreaterThan(400)
  })

  it('and more and more again once it rests', () => {
    const overload = createOverload(wide)
    storm(overload, 30)
    tickOften(overload, 6_000 / tickMs)
    expect(fill(overload, 1)).toHaveLength(500)
  })
})

type Move = { holder: number; bytes: number } | { leave: number } | { utilization: number }

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ holder: fc.integer({ min: 0, max: 3 }), bytes: fc.integer({ min: 0, max: 400 }) }),
  },
  { weight: 3, arbitrary: fc.record({ leave: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ utilization: fc.double({ min: 0, max: 1, noNaN: true }) }) },
)

it('whatever comes and goes, the bounds hold, a newcomer is let in, and an empty house holds nothing', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 400 }), fc.integer({ min: 1, max: 40 }), (moves, requests) => {
      const bounds = { requests, bytes: 1_000, connections: 10 }
      const overload = createOverload(bounds)
      const inside: Leave[] = []
      for (const made of moves) {
        if ('utilization' in made) overload.tick(made.utilization)
        else if ('leave' in made) inside.splice(made.leave % (inside.length + 1), 1)[0]?.()
        else {
          const entered = enter(overload, made.holder, made.bytes)
          if (typeof entered === 'function') inside.push(entered)
        }
        expect(overload.held.requests).toBe(inside.length)
        expect(inside.length).toBeLessThanOrEqual(requests)
        // Each of four holders may go past the bound by its last body.
        expect(overload.held.bytes).toBeLessThan(bounds.bytes + 4 * 400)
        if (overload.held.requests < requests) {
          const newcomer = enter(overload, 99, 0)
          expect(newcomer).toBeTypeOf('function')
          ;(newcomer as Leave)()
        }
      }
      for (const leave of inside) leave()
      expect(overload.held).toEqual({ requests: 0, bytes: 0, connections: 0 })
    }),
  )
})
