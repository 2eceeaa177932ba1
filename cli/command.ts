import { Command } from 'commander'
import { KithError } from '../client/index.ts'
import { lastingMessage } from '../src/db/pg-errors.ts'
import { printStderr } from './session.ts'

/** Wrong usage that commander does not know of: the program ends with 2. */
export class UsageError extends Error {}

/** What went wrong, for a person: never a stack trace. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error) || error.message === '') return `The command failed: ${String(error)}`
  const details =
    error instanceof KithError ? error.details.map(({ path, message }) => `${path} ${message}`.trim()) : []
  if (error instanceof KithError && details.length > 0) return `${error.sentence} (${details.join('; ')})`
  return lastingMessage(error) ?? error.message
}

/** A command of kith: each has examples in its help, and `--json`. */
export function newCommand(name: string, description: string, examples: string[]): Command {
  return newGroup(name, description, examples).option('--json', 'answer one JSON value on standard output')
}

/** A command that only holds others. */
export function newGroup(name: string, description: string, examples: string[]): Command {
  const lines = examples.map(example => `\n  ${withProgram(example)}`)
  return new Command(name)
    .description(description)
    .addHelpText('after', `\nExample${lines.length > 1 ? 's' : ''}:${lines.join('')}`)
}

/** `PORT=1 serve` → `PORT=1 npm run -s kith -- serve`; what stands in a pipe is written out by the example. */
function withProgram(example: string): string {
  return example.replace(/^((?:[A-Z_]+=\S+ )*)/, '$1npm run -s kith -- ')
}

/**
 * Answers on standard output: the value as JSON where `--json` asks for it, else the lines. Without lines there is only
 * something to say to the person, which goes to standard error in either case.
 */
export function answer(
  { json }: { json?: boolean | undefined },
  { value, lines = [], said = [] }: { value: unknown; lines?: string[]; said?: string[] },
): void {
  for (const line of said) printStderr(line)
  const text = json ? [JSON.stringify(value)] : lines
  process.stdout.write(text.map(line => `${line}\n`).join(''))
}
