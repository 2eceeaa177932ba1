import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { BenchPostgres, Service } from './environment.ts'

/**
 * The resources that a run used. CPU is in percent of one core. The memory is that of the service's processes: resident
 * at the end of the run, and the sum of their peaks during the run.
 */
export type Usage = {
  service: number
  postgres: number
  generator: number
  serviceMb: number
  servicePeakMb: number
}

/** The service and PostgreSQL, each with its child processes. */
export type MeasuredProcesses = { service: Pick<Service, 'pid'>; postgres: Pick<BenchPostgres, 'postgresPid'> }

const ticksPerSecond = 100
const pageBytes = 4_096

type Stat = { parent: number; ticks: number; childrenTicks: number; residentBytes: number }

function readStat(pid: number | 'self'): Stat | undefined {
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
    // The process has ended meanwhile.
    return undefined
  }
}

/** Reads a process and its descendants, by pid. */
function readProcessTree(root: number): Map<number, Stat> {
  const all = new Map<number, Stat>()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined
    if (stat) all.set(Number(name), stat)
  }
  const tree = new Map<number, Stat>()
  const add = (pid: number) => {
    const stat = all.get(pid)
    if (!stat) return
    tree.set(pid, stat)
    for (const [other, { parent }] of all) if (parent === pid) add(other)
  }
  add(root)
  return tree
}

/** The CPU ticks of running processes, and of ended children, whose sum their parent keeps. */
const sumTicks = (stats: Map<number, Stat>) =>
  sum(stats.values().map(({ ticks, childrenTicks }) => ticks + childrenTicks))

/** Resets the peak that the kernel reports. Without permission the peak remains that of the process's lifetime. */
function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {}
}

function readPeakBytes(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024
  } catch {
    // The process has ended meanwhile.
    return 0
  }
}

const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0)

/**
 * Runs a load and measures the resources that it used. The load generator is a child of this process that ends within
 * `work`.
 */
export async function withUsage<T>(
  { service, postgres }: MeasuredProcesses,
  work: () => Promise<T>,
): Promise<{ result: T; usage: Usage }> {
  const takeSnapshot = () => ({
    service: readProcessTree(service.pid),
    postgres: readProcessTree(postgres.postgresPid),
    own: readStat('self')!,
    at: performance.now(),
  })
  const before = takeSnapshot()
  for (const pid of before.service.keys()) resetPeak(pid)
  const result = await work()
  const after = takeSnapshot()
  const percent = (ticks: number) => (ticks / ticksPerSecond / ((after.at - before.at) / 1e3)) * 100
  return {
    result,
    usage: {
      service: percent(sumTicks(after.service) - sumTicks(before.service)),
      postgres: percent(sumTicks(after.postgres) - sumTicks(before.postgres)),
      generator: percent(after.own.childrenTicks - before.own.childrenTicks),
      serviceMb: sum(after.service.values().map(({ residentBytes }) => residentBytes)) / 2 ** 20,
      servicePeakMb: sum(after.service.keys().map(readPeakBytes)) / 2 ** 20,
    },
  }
}

/** The duration of a run, and the resources that it used. */
export type Timed = { seconds: number; usage: Usage }

/** Runs a program for its duration. See {@link withUsage}. */
export async function measureTime(processes: MeasuredProcesses, work: () => Promise<unknown>): Promise<Timed> {
  const began = performance.now()
  const { usage } = await withUsage(processes, work)
  return { seconds: (performance.now() - began) / 1e3, usage }
}
