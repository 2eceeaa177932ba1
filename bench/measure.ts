import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'

/** Of one run: a second, and milliseconds. */
export type Run = { rate: number; p50_ms: number; p99_ms: number | undefined }

/** What the processes used in one run, in percent of one core, and the memory of the service's at its end. */
export type Usage = { service: number; postgres: number; generator: number; service_mb: number }

/** Runs a program to its end and gives back what it printed. Throws with that when it fails. */
export async function runProgram(command: string, words: string[], environment: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(command, words, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  const [code, out, errors] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  if (code !== 0) throw new Error(`${command} failed:\n${out}${errors}`)
  return out
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Throws where a transaction failed: a figure with failures in it is none. */
export function parsePgbench(out: string): Run {
  const [, rate] = /^tps = ([\d.]+)/m.exec(out) ?? []
  const [, latency] = /^latency average = ([\d.]+) ms/m.exec(out) ?? []
  const failed = Number(/number of failed transactions: (\d+)/.exec(out)?.[1] ?? 0)
  if (rate === undefined || latency === undefined || failed > 0) throw new Error(`pgbench has no figures:\n${out}`)
  return { rate: Number(rate), p50_ms: Number(latency), p99_ms: undefined }
}

/** Reads the line of lua/requests.lua. Throws where an answer was no success. */
export function parseWrk(out: string): Run {
  const line = out.trim().split('\n').at(-1)!
  const { requests, duration, p50, p99, refused, broken } = JSON.parse(line) as Record<string, number>
  if (refused! + broken! > 0) throw new Error(`${refused} answers were no success, ${broken} never came:\n${out}`)
  return { rate: (requests! / duration!) * 1e6, p50_ms: p50! / 1e3, p99_ms: p99! / 1e3 }
}

const ticks_per_second = 100
const page_bytes = 4_096

type Stat = { parent: number; ticks: number; children_ticks: number; resident_bytes: number }

function statOf(pid: number | 'self'): Stat | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ').map(Number)
    const [parent, user, system, children_user, children_system, resident] = [1, 11, 12, 13, 14, 21].map(
      n => fields[n]!,
    )
    return {
      parent: parent!,
      ticks: user! + system!,
      children_ticks: children_user! + children_system!,
      resident_bytes: resident! * page_bytes,
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
  [...stats.values()].reduce((sum, { ticks, children_ticks }) => sum + ticks + children_ticks, 0)

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
  const result = await work()
  const after = look()
  const percent = (ticks: number) => (ticks / ticks_per_second / ((after.at - before.at) / 1e3)) * 100
  return {
    result,
    usage: {
      service: percent(ticksOf(after.service) - ticksOf(before.service)),
      postgres: percent(ticksOf(after.postgres) - ticksOf(before.postgres)),
      generator: percent(after.own.children_ticks - before.own.children_ticks),
      service_mb: [...after.service.values()].reduce((sum, { resident_bytes }) => sum + resident_bytes, 0) / 2 ** 20,
    },
  }
}

/** A moment in which what a load left behind (connections, dirty pages) settles. */
export const breathe = () => setTimeout(500)
