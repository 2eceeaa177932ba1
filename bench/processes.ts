import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

/** The service and PostgreSQL, by the process ids of their main processes. */
export type MeasuredProcesses = { service: { pid: number }; postgres: { pid: number } }

/** The resources that a load used: microseconds of CPU, with those of children, and the service's peak of memory. */
export type Usage = { nodeUs: number; postgresUs: number; peakMb: number }

/** The kernel counts CPU in ticks of this length. */
const tickUs = 10_000

type Stat = { parent: number; ticks: number }

/** Reads the ticks of a process and of its ended children. Returns undefined if it has ended. */
function readStat(pid: number): Stat | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ').map(Number)
    const [parent, user, system, childrenUser, childrenSystem] = [1, 11, 12, 13, 14].map(n => fields[n]!)
    return { parent: parent!, ticks: user! + system! + childrenUser! + childrenSystem! }
  } catch {
    return undefined
  }
}

/** The microseconds of CPU that a process has used. */
export const cpuUsOf = (pid: number): number => readStat(pid)!.ticks * tickUs

/** Reads a process and its descendants, by pid. */
function readTree(root: number): Map<number, Stat> {
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

const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0)
const cpuUs = (tree: Map<number, Stat>) => sum(tree.values().map(({ ticks }) => ticks)) * tickUs

/** Runs a load and measures what it used. */
export async function withUsage<T>(
  { service, postgres }: MeasuredProcesses,
  work: () => Promise<T>,
): Promise<{ result: T; usage: Usage }> {
  const read = () => ({ node: readTree(service.pid), postgres: readTree(postgres.pid) })
  const before = read()
  for (const pid of before.node.keys()) resetPeak(pid)
  const result = await work()
  const after = read()
  return {
    result,
    usage: {
      nodeUs: cpuUs(after.node) - cpuUs(before.node),
      postgresUs: cpuUs(after.postgres) - cpuUs(before.postgres),
      peakMb: sum(after.node.keys().map(readPeakMb)),
    },
  }
}

/** Resets the peak that the kernel reports. Without permission the peak remains that of the process's lifetime. */
function resetPeak(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
  } catch {}
}

function readPeakMb(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024
  } catch {
    return 0
  }
}
