import { execFile } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { quote } from '../src/welcome.ts'
import { compileCache, runInProcess } from './support/command.ts'
import { checkout, endProcesses, launch, makeFolder } from './support/process.ts'
import { useOwnService } from './support/service.ts'
import { runnable } from './support/shell-blocks.ts'

describe('the shell blocks of the documents', () => {
  const service = useOwnService()
  let address: string
  let programs: string
  beforeAll(async () => {
    programs = await makeFolder()
    const kith = `exec ${quote(process.execPath)} ${quote(join(checkout, 'cli', 'main.ts'))}`
    const curl = (await promisify(execFile)('sh', ['-c', 'command -v curl'])).stdout.trim()
    // Pages name the organization default, and each page has one of its own here.
    const scripts = {
      kith: `for word; do shift; [ "$word" = default ] && word=$TEST_ORGANIZATION; set -- "$@" "$word"; done\n${kith} "$@"`,
      npx: 'exec "$@"',
      // A refused request fails the page.
      curl: `case " $* " in *" --fail "*) exec ${quote(curl)} "$@" ;; esac\nexec ${quote(curl)} --fail-with-body "$@"`,
    }
    for (const [name, script] of Object.entries(scripts)) {
      await writeFile(join(programs, name), `#!/bin/sh\n${script}\n`)
      await chmod(join(programs, name), 0o755)
    }
    // A process of its own also seals the answers.
    address = await launch({ DATABASE_URL: service.databaseUrl }).ready
  })
  afterAll(endProcesses)

  it.for(runnable)(
    'of $page succeed in their order, on the seeded shop',
    { timeout: 60_000 },
    async ({ page, script, missing }, { skip }) => {
      skip(missing.length > 0, `needs ${missing.join(' and ')}`)
      const { key, token } = await service.organization()
      const access = { KITH_URL: address, KITH_TOKEN: token }
      if (page !== 'docs/seed.md') {
        const seeded = await runInProcess(['seed', '--people', '100'], { ...access, HOME: programs })
        expect(seeded.code, seeded.stderr).toBe(0)
      }
      const folder = join(await makeFolder(), 'page')
      await mkdir(folder)
      const env = {
        ...compileCache,
        ...access,
        PATH: `${programs}:${process.env.PATH}`,
        HOME: folder,
        DATABASE_URL: service.databaseUrl,
        TEST_ORGANIZATION: key,
      }
      const lines = script.map(block => block.script).join('\n')
      const run = await promisify(execFile)('bash', ['--norc', '-xeuo', 'pipefail', '-c', lines], {
        cwd: folder,
        env,
      }).catch(error => error)
      expect(run.code ?? 0, `${run.stderr}\n${run.stdout}`.replaceAll(token, '…').slice(-2_000)).toBe(0)
    },
  )
})
