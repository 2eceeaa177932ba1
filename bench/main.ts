import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { compareRevisions } from './compare.ts'
import { rows } from './rows.ts'
import { benchRows } from './run.ts'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    people: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string' },
    only: { type: 'string' },
    workers: { type: 'string', default: '1' },
    compare: { type: 'string' },
    json: { type: 'string' },
  },
})

const options = {
  people: Number(values.people ?? (values.quick ? 100_000 : 1_000_000)),
  rounds: Number(values.rounds),
  seconds: Number(values.seconds ?? (values.quick ? 5 : 10)),
  workers: Number(values.workers),
  rows: rows.filter(({ name }) => !values.only || values.only.split(',').includes(name)),
}

const missing = [
  ['wrk', 'wrk'],
  ['pgbench', 'postgresql-contrib'],
].filter(([program]) => spawnSync(program!, ['--version']).error)

if (missing.length > 0) {
  process.stderr.write(
    `The benchmark needs ${missing.map(([program, name]) => `${program} (Debian's package ${name})`).join(' and ')}.\n`,
  )
  process.exitCode = 2
} else if (options.rows.length === 0) {
  process.stderr.write(`--only takes names of rows: ${rows.map(({ name }) => name).join(', ')}.\n`)
  process.exitCode = 2
} else {
  const figures = values.compare ? await compareRevisions(values.compare, options) : await benchRows(options)
  if (values.json) writeFileSync(values.json, `${JSON.stringify(figures, null, 2)}\n`)
}
