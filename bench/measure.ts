import { type ChildProcess, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'

/**
 * The figures of a run. `rate` is per second. pgbench reports no percentiles: then `p50Ms` is the mean and `p99Ms`
 * undefined.
 */
export type Run = { rate: number; p50Ms: number; p99Ms: number | undefined }

const running = new Set<ChildProcess>()

/** Terminates all running programs. The calls that wait for them fail. */
export function endPrograms(): void {
  for (const child of running) child.kill('SIGTERM')
}

/** Runs a program to its end. Returns its standard output; throws with its output if it fails. */
export async function runProgram(command: string, words: string[], environment: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(command, words, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  running.add(child)
  const [code, out, errors] = await Promise.all([ended, text(child.stdout), text(child.stderr)]).finally(() =>
    running.delete(child),
  )
  if (code !== 0) throw new Error(`${command} failed:\n${out}${errors}`)
  return out
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The smallest value that at least this share of the values, from 0 to 1, does not exceed. NaN without values. */
export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? Number.NaN

/** Parses the output of pgbench. Throws if a transaction failed, since a failure falsifies the figures. */
export function parsePgbench(out: string): Run {
  const [, rate] = /^tps = ([\d.]+)/m.exec(out) ?? []
  const [, latency] = /^latency average = ([\d.]+) ms/m.exec(out) ?? []
  const failed = Number(/number of failed transactions: (\d+)/.exec(out)?.[1] ?? 0)
  if (rate === undefined || latency === undefined || failed > 0)
    throw new Error(`pgbench reported no figures, or failed transactions:\n${out}`)
  return { rate: Number(rate), p50Ms: Number(latency), p99Ms: undefined }
}

/** Parses the line that lua/requests.lua writes. Throws if a request was unsuccessful. */
export function parseWrk(out: string): Run {
  const line = out.trim().split('\n').at(-1)!
  const { requests, duration, p50, p99, refused, broken } = JSON.parse(line) as Record<string, number>
  if (refused! + broken! > 0)
    throw new Error(`${refused} responses were unsuccessful, ${broken} requests got no response:\n${out}`)
  return { rate: (requests! / duration!) * 1e6, p50Ms: p50! / 1e3, p99Ms: p99! / 1e3 }
}

/** Waits 500 ms after a load, so that closing connections and writing of dirty pages do not slow the next one. */
export const coolDown = () => setTimeout(500)
