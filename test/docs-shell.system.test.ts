import { execFile } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeKeyFile } from '../src/keys-at-rest/key-file.ts'
import { quote } from '../src/process/welcome.ts'
import { compileCache, runInProcess, serveCommands, useFolder } from './support/command.ts'
import { checkout, endProcesses, launch, makeFolder } from './support/process.ts'
import { useOwnService } from './support/service.ts'
import { patternOf, runnable, unseeded } from './support/shell-blocks.ts'

const keyFile = join(useFolder(), 'master.key')
beforeAll(() => makeKeyFile(keyFile))

describe('the shell blocks of the documents', () => {
  const service = useOwnService({ KITH_MASTER_KEY_FILE: keyFile })
  let address: string
  let programs: string
  let commands: Awaited<ReturnType<typeof serveCommands>>
  /** The organization of a newcomer, who follows one page after the other. */
  let newcomer: Awaited<ReturnType<typeof service.organization>>
  beforeAll(async () => {
    newcomer = await service.organization()
    programs = await makeFolder()
    commands = await serveCommands(programs)
    const curl = (await promisify(execFile)('sh', ['-c', 'command -v curl'])).stdout.trim()
    // Pages name the organization default, and have others here.
    const scripts = {
      kith: `for word; do shift; [ "$word" = default ] && word=$TEST_ORGANIZATION; set -- "$@" "$word"; done\n${commands.script}`,
      npx: 'exec "$@"',
      // A refused request fails the page.
      curl: `case " $* " in *" --fail "*) exec ${quote(curl)} "$@" ;; esac\nexec ${quote(curl)} --fail-with-body "$@"`,
    }
    for (const [name, script] of Object.entries(scripts)) {
      await writeFile(join(programs, name), `#!/bin/sh\n${script}\n`)
      await chmod(join(programs, name), 0o755)
    }
    // A process of its own also seals the answers.
    address = await launch({ DATABASE_URL: service.databaseUrl, KITH_MASTER_KEY_FILE: keyFile }).ready
  })
  afterAll(async () => {
    await commands.stop()
    await endProcesses()
  })

  it('can call kith by npx in the checkout', async () => {
    const { stdout } = await promisify(execFile)('npx', ['kith', '--version'], { cwd: checkout })
    expect(stdout).toMatch(/^\d+\.\d+\.\d+/)
  })

  it.for(runnable)(
    'of $page succeed in their order and print what it shows, on the seeded shop',
    { timeout: 60_000 },
    async ({ page, steps, missing }, { skip }) => {
      skip(missing.length > 0, `needs ${missing.join(' and ')}`)
      const { key, token } = unseeded.includes(page) ? newcomer : await service.organization()
      const access = { KITH_URL: address, KITH_TOKEN: token }
      if (!unseeded.includes(page)) {
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
        KITH_MASTER_KEY_FILE: keyFile,
        TEST_ORGANIZATION: key,
      }
      const mark = '=== end of the step ==='
      const script = steps.map(step => [...step.commands, `echo; echo '${mark}'`].join('\n')).join('\n')
      const run = await promisify(execFile)(
        'bash',
        ['--norc', '-euo', 'pipefail', '-c', `exec 2>&1\n${script.replaceAll('http://127.0.0.1:8080', address)}`],
        { cwd: folder, env },
      ).catch(error => error)
      const outputs: string[] = run.stdout.replaceAll(token, '…').split(`\n${mark}\n`)
      for (const [index, step] of steps.entries()) {
        const { commands, output } = step
        const shown = `${commands.join('\n')}\n\n${outputs[index]}`
        expect(index < outputs.length - 1, `fails: ${shown}`).toBe(true)
        expect(outputs[index], shown).toMatch(patternOf(output))
      }
      expect(run.code ?? 0).toBe(0)
    },
  )
})
