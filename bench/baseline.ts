import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * The CPU of the rows of a revision, in microseconds for each request, and the speed of the machine at that time: the
 * microseconds of a fixed piece of work. The same machine is up to four times slower at times, so the figures are
 * scaled by its speed.
 */
export type Baseline = { revision: string; speed: number; rows: Record<string, number> }

const path = new URL('baseline.json', import.meta.url)

export const readBaselines = (): Baseline[] => JSON.parse(readFileSync(path, 'utf8')) as Baseline[]

/** Stores the figures of a revision. Rows that were not measured keep theirs if the machine's speed is the same. */
export function writeBaseline(baseline: Baseline): void {
  const others = readBaselines().filter(({ revision }) => revision !== baseline.revision)
  writeFileSync(path, `${JSON.stringify([...others, baseline], null, 2)}\n`)
}

/** The CPU of a row at the revision, scaled to this speed of the machine. Undefined if the revision has no such row. */
export function limitOf({ rows, speed: then }: Baseline, name: string, speed: number): number | undefined {
  const us = rows[name]
  return us === undefined ? undefined : (us * speed) / then
}

/** Measures the speed of the machine: microseconds of CPU of work as a service does it, in a process of its own. */
export function measureSpeed(): number {
  const out = spawnSync(process.execPath, [fileURLToPath(import.meta.url)], { encoding: 'utf8' })
  return Number(out.stdout)
}

function work() {
  const person = {
    external_id: 'p1',
    email: 'p1@example.org',
    attribute_values: { city: 'Rome', note: 'n'.repeat(60) },
  }
  for (let n = 0; n < 100_000; n += 1) {
    const text = JSON.stringify({ ...person, score: n })
    if (n % 4 === 0) createHmac('sha256', 'key').update(text).digest()
    JSON.parse(text)
  }
}

if (import.meta.main) {
  work()
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  process.stdout.write(`${user + system}`)
}
