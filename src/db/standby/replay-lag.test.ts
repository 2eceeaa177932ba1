import { expect, it } from 'vitest'
import { ReplayLagMeter, type ReplaySample } from './standby.ts'

const hourMs = 3_600_000
const caughtUp: ReplaySample = { nowMs: 0, received: 100, replayed: 100, isReceiving: true, replayedAgeMs: 0 }

it('an idle primary is no lag', () => {
  const meter = new ReplayLagMeter()
  for (let nowMs = 0; nowMs <= hourMs; nowMs += 1_000)
    expect(meter.observe({ ...caughtUp, nowMs, replayedAgeMs: nowMs })).toEqual({ seconds: 0, bytes: 0 })
})

it('the first change after an idle hour is no lag of an hour', () => {
  const meter = new ReplayLagMeter()
  meter.observe({ ...caughtUp, replayedAgeMs: hourMs })
  const next = { ...caughtUp, received: 300, nowMs: 1_000, replayedAgeMs: hourMs + 1_000 }
  expect(meter.observe(next)).toEqual({ seconds: 0, bytes: 200 })
  expect(meter.observe({ ...next, nowMs: 3_000 })).toEqual({ seconds: 2, bytes: 200 })
  expect(meter.observe({ ...next, nowMs: 4_000, replayed: 300, replayedAgeMs: 3_000 })).toEqual({
    seconds: 0,
    bytes: 0,
  })
})

it('a standby that replays an hour late is an hour behind, from the first look on', () => {
  const meter = new ReplayLagMeter()
  const late = { ...caughtUp, received: 10_000, replayed: 100, replayedAgeMs: hourMs }
  expect(meter.observe(late).seconds).toBe(3_600)
  const moving = { ...late, received: 10_100, replayed: 200, nowMs: 1_000 }
  expect(meter.observe(moving)).toEqual({ seconds: 3_601, bytes: 9_900 })
})

it('a standby without its primary is behind since it lost it, or since its newest transaction', () => {
  const meter = new ReplayLagMeter()
  meter.observe({ ...caughtUp, nowMs: 10_000 })
  const detached = { ...caughtUp, isReceiving: false, replayedAgeMs: hourMs }
  expect(meter.observe({ ...detached, nowMs: 40_000 }).seconds).toBe(30)
  expect(new ReplayLagMeter().observe({ ...detached, received: null })).toEqual({ seconds: 3_600, bytes: undefined })
  expect(new ReplayLagMeter().observe({ ...detached, replayedAgeMs: null }).seconds).toBeUndefined()
})
