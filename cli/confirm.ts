import { createInterface } from 'node:readline'
import { UsageError } from './command.ts'
import { printStderr, visible } from './terminal.ts'

/** The option `--yes` of a command that destroys something. */
export type YesOption = { yes?: true }

/**
 * Prints the lines of `describe` and asks on the terminal whether to continue, unless `--yes` was given. With `name`,
 * the user must type this name, because the deletion is permanent. Throws a UsageError without a terminal, and an Error
 * after any other answer.
 */
export async function confirm(
  { yes }: YesOption,
  question: string,
  describe: () => Promise<string[]> = async () => [],
  name?: string,
): Promise<void> {
  if (yes) return
  const shown = visible(question)
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError(`${shown} There is no terminal to ask, so nothing was done. Use --yes to go on.`)
  for (const line of await describe()) printStderr(visible(line))
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await new Promise<string>(resolve => {
    // Ctrl-C and Ctrl-D close the interface and leave the cursor behind the question.
    terminal
      .once('close', () => resolve('\n'))
      .question(`${shown} ${name === undefined ? '[y/N]' : `Type ${visible(name)} to go on:`} `, resolve)
  })
  terminal.close()
  if (answer === '\n') printStderr('')
  const isConfirmed = name === undefined ? /^y(es)?$/i.test(answer.trim()) : answer.trim() === name
  if (!isConfirmed) throw new Error('Nothing was done.')
}
