import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { checkout } from '../support/process.ts'

const run = promisify(execFile)
const program = join(checkout, 'cli', 'kith.js')
const { PATH = '', HOME = '' } = process.env

/**
 * The kinds of dependencies that npm omits in this checkout. A dry run reports no more, and only npm 11 reports this
 * much.
 */
async function readOmitted(environment: Record<string, string>, ...options: string[]): Promise<string> {
  const words = ['config', 'get', 'omit', ...options]
  return (await run('npm', words, { cwd: checkout, env: { PATH, HOME, ...environment } })).stdout.trim()
}

describe('npm install', () => {
  it('installs devDependencies with NODE_ENV=production, since Node.js 24 is one of them', async () => {
    expect(await readOmitted({ NODE_ENV: 'production' })).toBe('')
  })

  it('omits devDependencies with --omit=dev, which the container image uses', async () => {
    expect(await readOmitted({}, '--omit=dev')).toBe('dev')
  })
})

describe('an unsupported Node.js', () => {
  const { engines } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { engines: { node: string } }

  it.each(['serve', 'org'])('makes `kith %s` exit with one line that says what to do', async word => {
    // An older Node.js cannot run TypeScript, which this flag simulates.
    const failed = await run(process.execPath, ['--no-experimental-strip-types', program, word], { env: {} }).catch(
      error => error,
    )
    expect(failed).toMatchObject({ code: 1, stdout: '' })
    expect(failed.stderr).toBe(
      `kith needs Node.js ${engines.node}; this is ${process.version}. Run npm install without --omit=dev: it installs Node.js 24.\n`,
    )
  })

  it('is a version that README.md does not list', () => {
    const readme = readFileSync(join(checkout, 'README.md'), 'utf8')
    expect(engines.node).toBe('^22.19.0 || ^24.0.0 || >=26.0.0')
    expect(readme).toContain('Node.js 22 (from 22.19), 24, 26 and newer')
  })
})
