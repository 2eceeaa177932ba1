import { execFile, spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { quote } from '../src/welcome.ts'
import { compileCache, runInProcess, serveCommands } from './support/command.ts'
import { checkout, endProcesses, launch, makeFolder } from './support/process.ts'
import { useService } from './support/service.ts'

/** Commands up to a comment line, and the comment: the end of their output. */
type Step = { commands: string[]; output: string[] }

/** test/operations runs the blocks of this page. */
const testedElsewhere = ['docs/operations.md']

/** These pages begin with an organization without people. */
const unseeded = ['README.md', 'docs/quick-starts.md']

/** The blocks of a page. `comment` is the HTML comment on the line before, which may say why a block is not run. */
const pages = globSync(['*.md', 'client/*.md', 'docs/*.md', 'docs/console/*.md'], { cwd: checkout })
  .filter(page => !testedElsewhere.includes(page))
  .sort()
  .map(page => {
    const text = readFileSync(join(checkout, page), 'utf8')
    const blocks = [...text.matchAll(/^( *)(?:<!-- (.*) -->\n *)?```(?:sh|bash|shell)\n([\s\S]*?)^\1```$/gm)]
    return {
      page,
      text,
      blocks: blocks.map(([, indent, comment, script]) => ({ comment, lines: linesOf(script!, indent!) })),
    }
  })

const runnable = pages
  .map(({ page, blocks }) => ({ page, blocks: blocks.filter(({ comment }) => comment === undefined) }))
  .filter(({ blocks }) => blocks.length > 0)
  .map(({ page, blocks }) => ({
    page,
    steps: blocks.flatMap(({ lines }) => readSteps(lines)),
    missing: findMissing(blocks),
  }))

function linesOf(script: string, indent: string): string[] {
  return script
    .trimEnd()
    .split('\n')
    .map(line => line.slice(indent.length))
}

/** A comment line directly after a command is output. Any other comment explains what follows. */
function readSteps(lines: string[]): Step[] {
  const steps: Step[] = [{ commands: [], output: [] }]
  for (const [index, line] of lines.entries()) {
    const { commands, output } = steps.at(-1)!
    const follows = /^[^#]/.test(lines[index - 1] ?? '') || output.length > 0
    if (line.startsWith('# ') && follows) output.push(line.slice(2))
    else if (output.length > 0) steps.push({ commands: [line], output: [] })
    else commands.push(line)
  }
  return steps
}

/** The programs that a page calls, that a machine with only Node.js may lack, and that this one lacks. */
function findMissing(blocks: { lines: string[] }[]): string[] {
  const script = blocks.flatMap(({ lines }) => lines).join('\n')
  return ['jq', 'openssl', 'curl'].filter(
    program => new RegExp(`\\b${program} `).test(script) && spawnSync(program, ['--version']).error,
  )
}

/** Matches the end of an output. `…` stands for any text of a line, and a duration for any other. */
function patternOf(output: string[]): RegExp {
  const escaped = output.join('\n').replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  return new RegExp(`${escaped.replaceAll('…', '.*').replaceAll(/\bin \d+ s\b/g, 'in \\d+ s')}\\s*$`)
}

it('every picture is shown on a page', () => {
  const shown = pages.map(({ text }) => text).join('\n')
  const pictures = globSync('docs/**/images/*.png', { cwd: checkout })
  expect(pictures.length).toBeGreaterThan(10)
  expect(pictures.filter(picture => !shown.includes(`images/${basename(picture)}`))).toEqual([])
})

describe('the shell blocks of the documents', () => {
  const service = useService()
  let address: string
  let programs: string
  let commands: Awaited<ReturnType<typeof serveCommands>>
  beforeAll(async () => {
    programs = await makeFolder()
    commands = await serveCommands(programs)
    const curl = (await promisify(execFile)('sh', ['-c', 'command -v curl'])).stdout.trim()
    // Pages name the organization default, and each page has one of its own here.
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
    address = await launch({ DATABASE_URL: service.databaseUrl }).ready
  })
  afterAll(async () => {
    await commands.stop()
    await endProcesses()
  })

  it('are not run only for a reason that the page gives', () => {
    const comments = pages.flatMap(({ blocks }) => blocks.flatMap(({ comment }) => comment ?? []))
    expect(comments.filter(comment => !/^not run: .{10,}/.test(comment))).toEqual([])
    expect(runnable.length).toBeGreaterThan(14)
  })

  it('are fenced, and call the program kith', () => {
    for (const { page, text } of pages) {
      expect(text, page).not.toMatch(/^ {4,}(kith|curl) /m)
      expect(text, page).not.toMatch(/^\s*kith\s*\(\)/m)
      expect(text, page).not.toMatch(/npm run (-s )?kith --/)
      expect(text, page).not.toMatch(/\$\{?TOKEN\b/)
    }
  })

  it.for(runnable)(
    'of $page succeed in their order and print what it shows, on the seeded shop',
    { timeout: 60_000 },
    async ({ page, steps, missing }, { skip }) => {
      skip(missing.length > 0, `needs ${missing.join(' and ')}`)
      const { key, token } = await service.organization()
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
