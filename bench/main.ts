import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { compareRevisions } from './compare.ts'
import { type ComparisonOptions, readOptions } from './options.ts'
import { benchRows } from './run.ts'

const packages = { wrk: 'wrk', pgbench: 'postgresql-contrib' }

/** Runs the benchmark with the words of the command line. Returns the exit code. */
async function main(words: readonly string[]): Promise<number> {
  let options: ComparisonOptions
  try {
    options = readOptions(words)
  } catch (error) {
    return printError((error as Error).message, 2)
  }
  const missing = Object.entries(packages).filter(([program]) => spawnSync(program, ['--version']).error)
  const missingNames = missing.map(([program, name]) => `${program} (Debian's package ${name})`)
  if (missing.length > 0) return printError(`The benchmark needs ${missingNames.join(' and ')}.`, 2)
  try {
    const figures = options.compare ? await compareRevisions(options.compare, options) : await benchRows(options)
    if (options.json) writeFileSync(options.json, `${JSON.stringify(figures, null, 2)}\n`)
    return 0
  } catch (error) {
    return printError((error as Error).message, 1)
  }
}

function printError(sentence: string, code: number): number {
  process.stderr.write(`${sentence}\n`)
  return code
}

process.exitCode = await main(process.argv.slice(2))
