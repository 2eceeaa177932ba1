import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { compareRevisions } from './compare.ts'
import { type ComparisonOptions, readOptions } from './options.ts'
import { benchRows } from './run.ts'

const packages = { wrk: 'wrk', pgbench: 'postgresql-contrib' }

/** Measures what the command line asks for; gives back the exit code. */
async function main(words: readonly string[]): Promise<number> {
  let asked: ComparisonOptions
  try {
    asked = readOptions(words)
  } catch (error) {
    return complain((error as Error).message, 2)
  }
  const missing = Object.entries(packages).filter(([program]) => spawnSync(program, ['--version']).error)
  const sought = missing.map(([program, name]) => `${program} (Debian's package ${name})`)
  if (missing.length > 0) return complain(`The benchmark needs ${sought.join(' and ')}.`, 2)
  try {
    const figures = asked.compare ? await compareRevisions(asked.compare, asked) : await benchRows(asked)
    if (asked.json) writeFileSync(asked.json, `${JSON.stringify(figures, null, 2)}\n`)
    return 0
  } catch (error) {
    return complain((error as Error).message, 1)
  }
}

function complain(sentence: string, code: number): number {
  process.stderr.write(`${sentence}\n`)
  return code
}

process.exitCode = await main(process.argv.slice(2))
