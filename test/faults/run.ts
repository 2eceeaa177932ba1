// Runs the fault tests: all rounds, or with --tenth a tenth of them.
//   npm run test:faults -- [--tenth] [--seed <number>] [<part of a file's name> …]
// Prints the seed, and as the last line the result: `N passed, N failed`.

import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const config = fileURLToPath(new URL('./vitest.config.ts', import.meta.url))

const { values: options, positionals } = parseArgs({
  options: { tenth: { type: 'boolean', default: false }, seed: { type: 'string' } },
  allowPositionals: true,
})
const seed = options.seed ?? String(randomInt(2 ** 31))
console.log(`fault tests: ${options.tenth ? 'a tenth of the rounds' : 'all rounds'}, seed ${seed}`)

const folder = await mkdtemp(join(tmpdir(), 'kith-faults-'))
const summaryFile = join(folder, 'summary')
try {
  await writeFile(summaryFile, '0 passed, 1 failed\n')
  const environment = {
    ...process.env,
    FAULTS_SHARE: options.tenth ? '10' : '1',
    FAULTS_SEED: seed,
    TEST_SUMMARY_FILE: summaryFile,
  }
  const child = spawn(process.execPath, [vitest, 'run', '--config', config, ...positionals], {
    env: environment,
    stdio: 'inherit',
  })
  const [code] = await once(child, 'close')
  const [counts = '', ...failures] = (await readFile(summaryFile, 'utf8')).trimEnd().split('\n')
  const [passed = 0, failed = 0, skipped = 0] = counts.match(/\d+/g)!.map(Number)
  // A skipped test counts as failed.
  const summary = `${passed} passed, ${failed + skipped} failed\n`
  if (process.env.TEST_SUMMARY_FILE)
    await writeFile(process.env.TEST_SUMMARY_FILE, [summary, ...failures.map(failure => `${failure}\n`)].join(''))
  console.log(`fault tests: seed ${seed}`)
  process.stdout.write(summary)
  process.exitCode = failed + skipped > 0 ? 1 : (code ?? 1)
} finally {
  await rm(folder, { recursive: true })
}
