import { performance } from 'node:perf_hooks'

/** Event-loop utilization above which a process is busy, and below which it is idle. */
const [busyUtilization, idleUtilization] = [0.2, 0.05]

/**
 * Returns a check to run repeatedly. It collects garbage once when the process becomes idle after it was busy. V8 collects only when
 * memory is allocated, so an idle process would keep the garbage of its last requests: 300 MiB after 256 changes of people of
 * 458 kB. Needs Node's `--expose-gc`; without it the check does nothing.
 */
export function collectWhenIdle(collect: () => unknown = collectAndRelease): () => Promise<void> {
  let before = performance.eventLoopUtilization()
  let wasBusy = false
  return async () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > busyUtilization) wasBusy = true
    if (!wasBusy || utilization > idleUtilization) return
    wasBusy = false
    collect()
  }
}

/** A last-resort collection returns the emptied pages to the system. After an ordinary one 290 MiB stay, after this one 65. */
const collectAndRelease = () => globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
