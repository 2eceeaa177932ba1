import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { measureSpeed, readBaselines, writeBaseline } from './baseline.ts'
import { measureGrowth } from './growth/main.ts'
import { median } from './measure.ts'
import { type Options, readOptions } from './options.ts'
import { medianOf, printAboveBaseline, printHead, printPatchRatio, printRow } from './report.ts'
import { type Measured, measureRows } from './run.ts'

const packages = { wrk: 'wrk', pgbench: 'postgresql-contrib' }

/** Runs the benchmark with the words of the command line. Returns the exit code. */
async function main(words: readonly string[]): Promise<number> {
  if (words[0] === 'growth') return end(measureGrowth(words.slice(1)))
  let options: Options
  try {
    options = readOptions(words)
  } catch (error) {
    return printError((error as Error).message, 2)
  }
  const missing = Object.entries(packages).filter(([program]) => spawnSync(program, ['--version']).error)
  const missingNames = missing.map(([program, name]) => `${program} (Debian's package ${name})`)
  if (missing.length > 0) return printError(`The benchmark needs ${missingNames.join(' and ')}.`, 2)
  return end(measure(options))
}

const end = (measuring: Promise<void>) =>
  measuring.then(
    () => 0,
    (error: Error) => printError(error.message, 1),
  )

async function measure(options: Options) {
  const { against, json, isBaseline } = options
  const speeds = [measureSpeed()]
  const measured = await measureRows(options, {
    onStart: version => printHead(options, version),
    onRow: row => printRow(row, against),
    onRound: () => speeds.push(measureSpeed()),
  })
  const speed = median(speeds)
  process.stdout.write('\n')
  if (isBaseline) writeBaseline({ revision: against!, speed, rows: cpuOf(measured) })
  printAboveBaseline(measured, speed, readBaselines())
  if (json) writeFileSync(json, `${JSON.stringify({ speed, measured }, null, 2)}\n`)
  printPatchRatio(measured)
}

const cpuOf = (measured: readonly Measured[]) =>
  Object.fromEntries(
    measured
      .filter(({ theirs }) => theirs.length > 0)
      .map(({ row, theirs }) => [
        row.name,
        Math.round((medianOf(theirs, 'nodeUs') + medianOf(theirs, 'postgresUs')) * 10) / 10,
      ]),
  )

function printError(sentence: string, code: number): number {
  process.stderr.write(`${sentence}\n`)
  return code
}

process.exitCode = await main(process.argv.slice(2))
