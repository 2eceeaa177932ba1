import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkout } from './support/process.ts'
import { type Service, startService } from './support/service.ts'

const document = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

/** The shell blocks of these sections, one after the other, as a newcomer pastes them. */
const lines = document
  .split(/^## /m)
  .filter(section => /^(One PATCH|A tour)\n/.test(section))
  .flatMap(section =>
    [...section.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block]) => block!.trimEnd().split('\n')),
  )

type Step = { commands: string[]; answer: string[] }

/** Commands up to a comment, and the comment: the end of what they print. */
const steps = lines.reduce<Step[]>((found, line) => {
  const last = found.at(-1)
  if (line.startsWith('# ')) last!.answer.push(line.slice(2))
  else if (last && last.answer.length === 0) last.commands.push(line)
  else found.push({ commands: [line], answer: [] })
  return found
}, [])

let service: Service
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

test('the lines of README.md do what it says, pasted one after the other', async () => {
  const mark = '=== answered ==='
  const script = steps.map(({ commands }) => [...commands, `echo; echo '${mark}'`].join('\n')).join('\n')
  // The commands find the database and the port of a service that runs on this machine by its environment.
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, DATABASE_URL: service.databaseUrl, PORT: new URL(service.address).port }
  const { stdout, stderr } = await promisify(execFile)(
    'bash',
    ['-euo', 'pipefail', '-c', script.replaceAll('http://127.0.0.1:8080', service.address)],
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
