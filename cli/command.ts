import { InvalidArgumentError } from 'commander'
import { printStderr } from './terminal.ts'

/** Wrong usage that commander does not detect. The program exits with 2. */
export class UsageError extends Error {}

/** The option `--json`, as commander returns it. */
export type JsonOption = { json?: boolean | undefined }

/**
 * The result of a command. Standard output gets `value` as one line of JSON with `--json`, else `lines`. `messages` go to standard error in
 * both cases.
 */
export type Result = { value: unknown; lines?: string[]; messages?: string[] }

/** Prints a result. */
export function printResult({ json }: JsonOption, { value, lines = [], messages = [] }: Result): void {
  for (const line of messages) printStderr(line)
  const text = json ? [JSON.stringify(value)] : lines
  process.stdout.write(text.map(line => `${line}\n`).join(''))
}

/** Returns a parser of a whole number of the command line. */
export function wholeNumber(min = 0, max = 999_999_999_999_999): (text: string) => number {
  return text => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (number >= min && number <= max) return number
    throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`)
  }
}

/** The options with these names that were given. */
export const givenOf = <Options extends object, Name extends keyof Options>(
  options: Options,
  ...names: Name[]
): Pick<Options, Name> =>
  Object.fromEntries(names.flatMap(name => (options[name] === undefined ? [] : [[name, options[name]]]))) as Pick<
    Options,
    Name
  >

/** Adds `name=value` of the command line to the pairs. The name may contain an equals sign. */
export function parsePair(text: string, pairs: Map<string, string>): Map<string, string> {
  const at = text.lastIndexOf('=')
  if (at < 1 || at === text.length - 1) throw new InvalidArgumentError('Give column=field.')
  return new Map([...pairs, [text.slice(0, at).trim(), text.slice(at + 1).trim()]])
}
