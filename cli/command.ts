import { Command, Help, InvalidArgumentError, type Option } from 'commander'
import { printStderr } from './terminal.ts'

/** Wrong usage that commander does not detect. The program exits with 2. */
export class UsageError extends Error {}

/** A command whose subcommands have modules of their own. */
export class KithCommand extends Command {
  addSubcommands(
    environment: NodeJS.ProcessEnv,
    subcommands: readonly ((environment: NodeJS.ProcessEnv) => Command)[],
  ): this {
    for (const create of subcommands) this.addCommand(create(environment))
    return this
  }
}

/** Creates a command with `--json` and with examples in its help. */
export function newCommand(name: string, description: string, examples: string[]): KithCommand {
  return newPlainCommand(name, description, examples).option(
    '--json',
    'Print the result as one JSON value on standard output.',
  )
}

/** Creates a command without `--json`: one that groups subcommands, or whose output is a stream. */
export function newPlainCommand(name: string, description: string, examples: string[]): KithCommand {
  const lines = examples.map(example => `\n  ${withProgram(example)}`)
  return new KithCommand(name)
    .description(description)
    .helpOption('-h, --help', 'Show this help.')
    .configureHelp({ optionDescription })
    .addHelpText('after', `\nExample${lines.length > 1 ? 's' : ''}:${lines.join('')}`)
}

/** A repeatable option begins with an empty list, which is no default to show. */
function optionDescription(option: Option): string {
  const isEmptyList = Array.isArray(option.defaultValue) && option.defaultValueDescription === undefined
  return isEmptyList ? option.description : new Help().optionDescription(option)
}

/** `PORT=1 serve` → `PORT=1 npx kith serve`. */
function withProgram(example: string): string {
  return example.replace(/^((?:[A-Z_]+=\S+ )*)/, '$1npx kith ')
}

/** The option `--json`, as commander returns it. */
export type JsonOption = { json?: boolean | undefined }

/**
 * Prints a command's result on standard output: `value` as one line of JSON with `--json`, else `lines`. `messages` go to
 * standard error in both cases.
 */
export function printResult(
  { json }: JsonOption,
  { value, lines = [], messages = [] }: { value: unknown; lines?: string[]; messages?: string[] },
): void {
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
