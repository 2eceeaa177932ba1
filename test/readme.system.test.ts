import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compileCache } from './support/command.ts'
import { createTestDatabase } from './support/database.ts'
import { checkout, endProcesses, launch } from './support/process.ts'

type Step = { commands: string[]; answer: string[] }

/** Reads the steps of sections. A step is commands up to a comment, and the comment is the end of their output. */
function readSteps(document: string, titles: string[]): Step[] {
  const lines = readFileSync(join(checkout, document), 'utf8')
    .split(/^## /m)
    .filter(section => titles.includes(section.split('\n')[0]!))
    .flatMap(section =>
      [...section.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block]) => block!.trimEnd().split('\n')),
    )
  return lines.reduce<Step[]>((found, line) => {
    const last = found.at(-1)
    if (line.startsWith('# ')) last!.answer.push(line.slice(2))
    else if (last && last.answer.length === 0) last.commands.push(line)
    else found.push({ commands: [line], answer: [] })
    return found
  }, [])
}

describe.each([
  { document: 'README.md', titles: ['One PATCH', 'The proof of a consent', 'A tour'] },
  { document: 'docs/quick-starts.md', titles: ['curl'] },
])('$document', ({ document, titles }) => {
  const steps = readSteps(document, titles)
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  beforeAll(async () => {
    database = await createTestDatabase()
  })
  afterAll(async () => {
    await endProcesses()
    await database.drop()
  })

  // A process of its own also seals the answers.
  it('shows the real output of its shell lines', async () => {
    const address = await launch({ DATABASE_URL: database.url }).ready
    const mark = '=== answered ==='
    const script = steps.map(({ commands }) => [...commands, `echo; echo '${mark}'`].join('\n')).join('\n')
    // The commands find the database and the port of the service in the environment.
    const { PATH, HOME } = process.env
    const env = { PATH, HOME, DATABASE_URL: database.url, PORT: new URL(address).port, ...compileCache }
    const { stdout, stderr } = await promisify(execFile)(
      'bash',
      ['-euo', 'pipefail', '-c', script.replaceAll('http://127.0.0.1:8080', address)],
      { cwd: checkout, env },
    )
    const answers = stdout.split(`${mark}\n`)
    expect(steps.length).toBeGreaterThan(3)
    for (const [index, { commands, answer }] of steps.entries())
      expect(
        answers[index]!.trimEnd().endsWith(answer.join('\n')),
        `${commands.join('\n')}\n${answers[index]}${stderr}`,
      ).toBe(true)
  }, 120_000)
})
