import { execFile, spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { quote } from '../src/welcome.ts'
import { compileCache, runInProcess } from './support/command.ts'
import { checkout, endProcesses, launch, makeFolder } from './support/process.ts'
import { useOwnService } from './support/service.ts'

/** These pages have tests of their own: test/readme.test.ts and test/operations. */
const testedElsewhere = ['README.md', 'docs/quick-starts.md', 'docs/operations.md']

/** The blocks of a page. `comment` is the HTML comment on the line before, which may say why a block is not run. */
const pages = globSync(['*.md', 'client/*.md', 'docs/*.md', 'docs/console/*.md'], { cwd: checkout })
  .filter(page => !testedElsewhere.includes(page))
  .sort()
  .map(page => {
    const text = readFileSync(join(checkout, page), 'utf8')
    const blocks = [...text.matchAll(/^(?:<!-- (.*) -->\n)?```(?:sh|bash|shell)\n([\s\S]*?)^```$/gm)]
    return { page, text, blocks: blocks.map(([, comment, script]) => ({ comment, script: script! })) }
  })

const runnable = pages
  .map(({ page, blocks }) => ({ page, script: blocks.filter(({ comment }) => comment === undefined) }))
  .filter(({ script }) => script.length > 0)
  .map(({ page, script }) => ({ page, script, missing: findMissing(script.map(block => block.script).join('\n')) }))

/** The programs that a script calls, that a machine with only Node.js may lack, and that this one lacks. */
function findMissing(script: string): string[] {
  return ['jq', 'openssl', 'curl'].filter(
    program => new RegExp(`\\b${program} `).test(script) && spawnSync(program, ['--version']).error,
  )
}

it('every picture is shown on a page', () => {
  const shown = pages.map(({ text }) => text).join('\n') + readFileSync(join(checkout, 'README.md'), 'utf8')
  const pictures = globSync('docs/**/images/*.png', { cwd: checkout })
  expect(pictures.length).toBeGreaterThan(10)
  expect(pictures.filter(picture => !shown.includes(`images/${basename(picture)}`))).toEqual([])
})

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

  it('are not run only for a reason that the page gives', () => {
    const comments = pages.flatMap(({ blocks }) => blocks.flatMap(({ comment }) => comment ?? []))
    expect(comments.filter(comment => !/^not run: .{10,}/.test(comment))).toEqual([])
    expect(runnable.length).toBeGreaterThan(7)
  })

  it('call the program kith, and define no function of that name', () => {
    for (const { page, text } of pages) {
      expect(text, page).not.toMatch(/^\s*kith\s*\(\)/m)
      expect(text, page).not.toMatch(/npm run (-s )?kith --/)
      expect(text, page).not.toMatch(/\$\{?TOKEN\b/)
    }
  })

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
