import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

/**
 * What the processes used in one run, in percent of one core; and the memory of the service's: resident at the run's
 * end, and the most of each process in the run.
 */
export type Usage = {
  service: number
  postgres: number
  generator: number
  serviceMb: number
  servicePeakMb: number
}

const ticksPerSecond = 100
const pageBytes = 4_096

type Stat = { parent: number; ticks: number; childrenTicks: number; residentBytes: number }

function statOf(pid: number | 'self'): Stat | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ').map(Number)
    const [parent, user, system, childrenUser, childrenSystem, resident] = [1, 11, 12, 13, 14, 21].map(n => fields[n]!)
    return {
      parent: parent!,
      ticks: user! + system!,
      childrenTicks: childrenUser! + childrenSystem!,
      residentBytes: resident! * pageBytes,
    }
  } catch {
    // It has ended meanwhile.
    return undefined
  }
}

/** A process and those it has started, by pid. */
function family(root: number): Map<number, Stat> {
  const all = new Map<number, Stat>()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined
    if (stat) all.set(Number(name), stat)
  }
  const found = new Map<number, Stat>()
  const add = (pid: number) => {
    const stat = all.get(pid)
    if (!stat) return
    found.set(pid, stat)
    for (const [other, { parent }] of all) if (parent === pid) add(other)
  }
  add(root)
  return found
}

/** Of all that live, and of children that have ended meanwhile, which the process that started them keeps the sum of. */
const ticksOf = (stats: Map<number, Stat>) =>
  sum(stats.values().map(({ ticks, childrenTicks }) => ticks + childrenTicks))

/** From now on the kernel tells the peak of what follows. Where it may not be told so, that of the process's life. */
function forgetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {}
}

function peakOf(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024
  } catch {
    // It has ended meanwhile.
    return 0
  }
}

const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0)

/** Runs a load, and says what it used. The generator is a child of ours, which has ended by then. */
export async function withUsage<T>(
  pids: { service: number; postgres: number },
  work: () => Promise<T>,
): Promise<{ result: T; usage: Usage }> {
  const look = () => ({
    service: family(pids.service),
    postgres: family(pids.postgres),
    own: statOf('self')!,
    at: performance.now(),
  })
  const before = look()
  for (const pid of before.service.keys()) forgetPeak(pid)
  const result = await work()
  const after = look()
  const percent = (ticks: number) => (ticks / ticksPerSecond / ((after.at - before.at) / 1e3)) * 100
  return {
    result,
    usage: {
      service: percent(ticksOf(after.service) - ticksOf(before.service)),
      postgres: percent(ticksOf(after.postgres) - ticksOf(before.postgres)),
      generator: percent(after.own.childrenTicks - before.own.childrenTicks),
      serviceMb: sum(after.service.values().map(({ residentBytes }) => residentBytes)) / 2 ** 20,
      servicePeakMb: sum(after.service.keys().map(peakOf)) / 2 ** 20,
    },
  }
}
