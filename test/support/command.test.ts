import { expect, it } from 'vitest'
import { runInProcess, startCommand } from './command.ts'
import { receiptOf } from './receipts.ts'

it('a command in this process reads, prints and exits as the process of the program does', async () => {
  const receipt = JSON.stringify(await receiptOf())
  const results = []
  for (const [words, environment, input] of [
    [['verify', '-', '--json'], {}, receipt],
    [['verify', '-'], {}, receipt.replace('"salt":"', '"salt":"A')],
    [['serve', '--workers', 'many'], {}, ''],
    [['serve'], { PORT: 'eighty' }, ''],
  ] as [string[], Record<string, string>, string][]) {
    const { child, ended } = startCommand(words, environment)
    child.stdin.end(input)
    const result = await ended
    expect(await runInProcess(words, environment, process.cwd(), input)).toEqual(result)
    results.push(result)
  }
  expect(results).toMatchObject([
    { code: 0, stdout: expect.stringMatching(/^\{"valid":true/), stderr: '' },
    { code: 1, stdout: expect.stringContaining('not valid'), stderr: '' },
    { code: 2, stdout: '', stderr: expect.stringContaining('--help') },
    { code: 1, stdout: '', stderr: expect.stringContaining('PORT') },
  ])
})
