import { performance } from 'node:perf_hooks'

/** Returns a function that measures: from 0 to 1, the share of the time since its last call in which the event loop was busy. */
export function utilizationSinceLastCall(): () => number {
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization
  }
}
