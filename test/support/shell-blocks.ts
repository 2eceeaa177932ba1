import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from './process.ts'

/** Commands up to a comment line, and the comment: the end of their output. */
type Step = { commands: string[]; output: string[] }

/** test/operations runs the blocks of these pages. */
const testedElsewhere = ['docs/operations.md', 'docs/runbook.md', 'docs/backups.md']

/** A newcomer follows these pages in this order. The first begins with an organization without people. */
export const unseeded = ['README.md', 'docs/first-steps.md']

/** The blocks of a page. `comment` is the HTML comment on the line before, which may say why a block is not run. */
export const pages = globSync(['*.md', 'client/*.md', 'docs/*.md', 'docs/console/*.md'], { cwd: checkout })
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

/** The pages with blocks to run, in their order. `missing`: the programs that this machine lacks for them. */
export const runnable = pages
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
export function patternOf(output: string[]): RegExp {
  const escaped = output.join('\n').replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
  return new RegExp(`${escaped.replaceAll('…', '.*').replaceAll(/\bin \d+ s\b/g, 'in \\d+ s')}\\s*$`)
}
