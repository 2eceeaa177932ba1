import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from './process.ts'

/** These pages have tests of their own: test/readme.system.test.ts and test/operations. */
const testedElsewhere = ['README.md', 'docs/quick-starts.md', 'docs/operations.md']

/** The blocks of a page. `comment` is the HTML comment on the line before, which may say why a block is not run. */
export const pages = globSync(['*.md', 'client/*.md', 'docs/*.md', 'docs/console/*.md'], { cwd: checkout })
  .filter(page => !testedElsewhere.includes(page))
  .sort()
  .map(page => {
    const text = readFileSync(join(checkout, page), 'utf8')
    const blocks = [...text.matchAll(/^(?:<!-- (.*) -->\n)?```(?:sh|bash|shell)\n([\s\S]*?)^```$/gm)]
    return { page, text, blocks: blocks.map(([, comment, script]) => ({ comment, script: script! })) }
  })

/** The pages with blocks to run, in their order. `missing`: the programs that this machine lacks for them. */
export const runnable = pages
  .map(({ page, blocks }) => ({ page, script: blocks.filter(({ comment }) => comment === undefined) }))
  .filter(({ script }) => script.length > 0)
  .map(({ page, script }) => ({ page, script, missing: findMissing(script.map(block => block.script).join('\n')) }))

/** The programs that a script calls, that a machine with only Node.js may lack, and that this one lacks. */
function findMissing(script: string): string[] {
  return ['jq', 'openssl', 'curl'].filter(
    program => new RegExp(`\\b${program} `).test(script) && spawnSync(program, ['--version']).error,
  )
}
