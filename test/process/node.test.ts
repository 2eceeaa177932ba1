import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { checkout } from '../support/process.ts'

const run = promisify(execFile)
const program = join(checkout, 'cli', 'kith.js')
const { PATH = '', HOME = '' } = process.env

/** The kinds of dependencies that npm leaves out in this checkout. A dry run tells no more, and only npm 11 tells as much. */
async function omitted(environment: Record<string, string>, ...options: string[]): Promise<string> {
  const words = ['config', 'get', 'omit', ...options]
  return (await run('npm', words, { cwd: checkout, env: { PATH, HOME, ...environment } })).stdout.trim()
}

describe('npm install', () => {
  it('leaves nothing out under NODE_ENV=production: Node.js 24 and what the tests need are devDependencies', async () => {
    expect(await omitted({ NODE_ENV: 'production' })).toBe('')
  })

  it('leaves those out with --omit=dev, as the image does, which has a Node.js of its own', async () => {
    expect(await omitted({}, '--omit=dev')).toBe('dev')
  })
})

describe('a Node.js that cannot run kith', () => {
  const { engines } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { engines: { node: string } }

  it.each(['serve', 'org'])('is told so in one line, with what to do, before `kith %s` does anything', async word => {
    // An older one has no type stripping either.
    const failed = await run(process.execPath, ['--no-experimental-strip-types', program, word], { env: {} }).catch(
      error => error,
    )
    expect(failed).toMatchObject({ code: 1, stdout: '' })
    expect(failed.stderr).toBe(
      `kith needs Node.js ${engines.node}; this is ${process.version}. Run npm install without --omit=dev: it installs Node.js 24.\n`,
    )
  })

  it('is one that README.md does not name as supported', () => {
    const readme = readFileSync(join(checkout, 'README.md'), 'utf8')
    expect(engines.node).toBe('^22.19.0 || ^24.0.0 || >=26.0.0')
    expect(readme).toContain('Node.js 22 (from 22.19), 24, 26 and newer')
  })
})
