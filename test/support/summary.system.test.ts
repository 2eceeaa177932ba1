import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
const reporter = fileURLToPath(new URL('./summary.ts', import.meta.url))

/** Runs test files with only this reporter. Returns the summary that it writes. */
async function summaryOf(files: Record<string, string>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'kith-summary-'))
  const summaryFile = join(directory, 'summary')
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
    const run = ['run', '--root', directory, '--globals', '--reporter', reporter]
    const environment = { ...process.env, TEST_SUMMARY_FILE: summaryFile }
    const child = spawn(process.execPath, [vitest, ...run], { env: environment, stdio: 'ignore' })
    await once(child, 'close')
    return await readFile(summaryFile, 'utf8')
  } finally {
    await rm(directory, { recursive: true })
  }
}

it('counts passed tests, and leaves out skipped tests if there are none', async () => {
  expect(await summaryOf({ 'a.test.js': `it('a', () => {})`, 'b.test.js': `it('b', () => {})` })).toBe(
    '2 passed, 0 failed\n',
  )
})

it('counts files, suites and unhandled rejections that fail outside a test as failed', async () => {
  const summary = await summaryOf({
    'tests.test.js': `it('a', () => {}); it('b', () => { throw new Error('b\\n  seed', { cause: new Error('why') }) }); it.skip('c', () => {})`,
    'file.test.js': `throw new Error('file')`,
    'suite.test.js': `describe('suite', () => { beforeAll(() => { throw new Error('suite') }); it('d', () => {}) })`,
    'promise.test.js': `it('e', () => { Promise.reject(new Error('promise')) })`,
  })
  const [counts, ...failures] = summary.trimEnd().split('\n')
  expect(counts).toBe('2 passed, 4 failed, 2 skipped')
  expect(failures.sort()).toEqual([
    'file.test.js: file',
    'outside a test: promise',
    'suite.test.js: suite',
    'tests.test.js > b: b seed <- why',
  ])
})
