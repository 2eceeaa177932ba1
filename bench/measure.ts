import { type ChildProcess, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

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
