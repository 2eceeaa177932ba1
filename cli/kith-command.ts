import { Argument, Command, Help, Option } from 'commander'
import type { Client } from '../client/index.ts'
import { type JsonOption, printResult, type Result } from './command.ts'
import type { YesOption } from './confirm.ts'
import type { ConnectionOptions } from './connection.ts'
import type { Columns, FormatOption, RowFormat, Rows } from './print-rows.ts'
import type { Session } from './session.ts'

type CamelCase<Words extends string> = Words extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Words

/** The name of an option as commander returns it: `--dry-run` is `dryRun`, and `--no-wait` is `wait`. */
type NameOf<Flags extends string> = Flags extends `${infer Long} ${string}`
  ? NameOf<Long>
  : Flags extends `--no-${infer Name}`
    ? CamelCase<Name>
    : Flags extends `--${infer Name}`
      ? CamelCase<Name>
      : never

/** The value of an option or argument without a parser: a text, several texts for `…`, or a flag. */
type TextOf<Flags extends string> = Flags extends `${string}...${string}`
  ? string[]
  : Flags extends `${string}${'<' | '['}${string}`
    ? string
    : true

/** The settings of an option or argument. The help shows `shown` in place of the default. */
type Settings = {
  parse?: (text: string, before: never) => unknown
  choices?: readonly string[]
  default?: unknown
  shown?: string
  required?: true
  conflicts?: string
}

type ValueOf<Flags extends string, Own> = Own extends { parse: (...given: never[]) => infer Value }
  ? Value
  : Own extends { choices: readonly (infer Choice)[] }
    ? TextOf<Flags> extends string[]
      ? Choice[]
      : Choice
    : TextOf<Flags>

type OptionOf<Flags extends string, Own> = Own extends { default: unknown } | { required: true }
  ? Record<NameOf<Flags>, ValueOf<Flags, Own>>
  : Flags extends `--no-${string}`
    ? Record<NameOf<Flags>, boolean>
    : { [Name in NameOf<Flags>]?: ValueOf<Flags, Own> }

/** An optional argument may be absent. If it takes several values, it is then an empty list. */
type ArgumentOf<Flags extends string, Own> =
  | ValueOf<Flags, Own>
  | (Flags extends `[${string}...]` ? never : Flags extends `[${string}` ? DefaultOf<Own> : never)
type DefaultOf<Own> = Own extends { default: unknown } ? never : undefined

/** The work of a command. It returns what the command prints, or has printed it itself. */
type Work<Given extends unknown[], Printed> = (
  ...given: Given
) => Printed | Promise<Printed | undefined> | Promise<void>

/**
 * A command. Its flags determine its help and the types of the parameters of its work: the arguments, then the options.
 * `Printed` is the result of the work: a {@link Result} of a command with `--json`, the rows of a list, and nothing of
 * a command whose output is a stream.
 */
export class KithCommand<Arguments extends unknown[], Options extends object, Printed> {
  readonly command: Command
  readonly environment: NodeJS.ProcessEnv
  readonly #columns: Columns | undefined

  constructor(
    environment: NodeJS.ProcessEnv,
    name: string,
    description: string,
    { columns, hasJson = false }: { columns?: Columns; hasJson?: boolean } = {},
  ) {
    this.environment = environment
    this.#columns = columns
    this.command = new Command(name)
      .description(description)
      .helpOption('-h, --help', 'Show this help.')
      .configureHelp({ optionDescription })
    if (hasJson) this.option('--json', 'Print the result as one JSON value on standard output.')
  }

  /** Adds a subcommand with `--json`. */
  add(name: string, description: string): KithCommand<[], JsonOption, Result> {
    return this.adopt(newCommand(this.environment, name, description))
  }

  /** Adds a subcommand without `--json`, whose output is a stream. */
  addPlain(name: string, description: string): PlainCommand {
    return this.adopt(newPlainCommand(this.environment, name, description))
  }

  /** Adds a subcommand that lists rows, with `--format`. This option comes after the command's own options. */
  addList(columns: Columns, name: string, description: string): KithCommand<[], FormatOption, Rows> {
    return this.adopt(newListCommand(this.environment, columns, name, description))
  }

  /** Adds a subcommand, and returns it. */
  adopt<Added extends { command: Command }>(added: Added): Added {
    this.command.addCommand(added.command)
    return added
  }

  /** Adds examples to the help. An example begins with the word after kith, or with environment variables. */
  examples(...examples: string[]): this {
    const lines = examples.map(example => `\n  ${example.replace(/^((?:[A-Z_]+=\S+ )*)/, '$1npx kith ')}`)
    this.command.addHelpText('after', `\nExample${lines.length > 1 ? 's' : ''}:${lines.join('')}`)
    return this
  }

  argument<Flags extends string, const Own extends Settings = object>(
    flags: Flags,
    description: string,
    settings?: Own,
  ): KithCommand<[...Arguments, ArgumentOf<Flags, Own>], Options, Printed> {
    this.command.addArgument(withSettings(new Argument(flags, description), settings))
    return this as never
  }

  option<Flags extends string, const Own extends Settings = object>(
    flags: Flags,
    description: string,
    settings: Settings & Own = {} as Own,
  ): KithCommand<Arguments, Options & OptionOf<Flags, Own>, Printed> {
    const option = withSettings(new Option(flags, description), settings)
    if (settings.required) option.makeOptionMandatory()
    if (settings.conflicts) option.conflicts(settings.conflicts)
    this.command.addOption(option)
    return this as never
  }

  /** Adds options that several commands have. */
  with<More extends object>(
    add: (command: PlainCommand) => KithCommand<[], More, never>,
  ): KithCommand<Arguments, Options & More, Printed> {
    return add(this as never) as never
  }

  /** Adds `--yes` to a command that destroys something. */
  yes(): KithCommand<Arguments, Options & YesOption, Printed> {
    return this.option('--yes', 'Do not ask. Needed where no terminal can be asked.')
  }

  /** Adds `--org` to a command that runs on the database of one organization. */
  org(): KithCommand<Arguments, Options & { org: string }, Printed> {
    return this.option('--org <key>', 'The organization.', { default: 'default' })
  }

  /** Adds `--format`, and `--json` like commands that print no rows. */
  format(): KithCommand<Arguments, Options & FormatOption, Printed> {
    this.option(
      '--format <format>',
      'The format: json is one JSON value, ndjson one for each row. Default: table on a terminal, else ndjson.',
      { choices: formats },
    )
    this.command.addOption(new Option('--json', 'Same as --format json.').implies({ format: 'json' }))
    return this as never
  }

  /**
   * Adds the options for the service and the credentials. In `kith import`, `--profile` has another meaning, so only
   * KITH_PROFILE selects its profile.
   */
  connection(): KithCommand<Arguments, Options & ConnectionOptions, Printed> {
    if (this.#columns && !this.#has('--format')) this.format()
    if (!this.#has('--profile'))
      this.option('--profile <name>', 'A service and credentials that kith login stored. Default: KITH_PROFILE.')
    return this.option(
      '--url <url>',
      'The address of the service. Default: KITH_URL, else the profile, else the service of this machine.',
    )
      .option('--token <token>', 'A token. Default: KITH_TOKEN.')
      .option('--token-file <file>', 'A file that holds the token, or - for standard input.')
      .option('--client-id <id>', 'A client. The command fetches and renews its tokens. Default: KITH_CLIENT_ID.')
      .option(
        '--client-secret <secret>',
        'The secret of the client. Prefer KITH_CLIENT_SECRET, which no process list shows.',
      )
      .option('--org <key>', 'The organization, on the machine of the service and without a token. Default: default.')
  }

  #has(flag: string): boolean {
    return this.command.options.some(({ long }) => long === flag)
  }

  /** Runs `work`, and prints what it returns. */
  action(work: Work<[...Arguments, Options], Printed>): this {
    if (this.#columns && !this.#has('--format')) this.format()
    this.command.action(async (...given: unknown[]) => {
      const printed = await work(...(given.slice(0, -1) as [...Arguments, Options]))
      if (printed === undefined) return
      if (!this.#columns) return printResult(optionsIn(given), printed as Result)
      const { printRows } = await import('./print-rows.ts')
      await printRows(optionsIn(given), this.#columns, printed as Rows)
    })
    return this
  }

  /** Runs `work` with a client of the service that the options name. A token that the command creates itself has this scope. */
  atService(scope: string, work: Work<[client: Client, ...Arguments, Options], Printed>): this {
    if (!this.#has('--url')) this.connection()
    return this.action(async (...given) => {
      const { connect } = await import('./connection.ts')
      const client = await connect(this.environment, given.at(-1) as ConnectionOptions, { scope })
      return (await work(client, ...given)) as Printed | undefined
    })
  }

  /** Runs `work` on the database of this machine. */
  onDatabase(work: Work<[session: Session, ...Arguments, Options], Printed>): this {
    return this.action(async (...given) => {
      const { withSession } = await import('./session.ts')
      return withSession(this.environment, async session => (await work(session, ...given)) as Printed | undefined)
    })
  }
}

/** A command without arguments, options or a result. */
export type PlainCommand = KithCommand<[], object, never>

/** The options that a function adds to a command. */
export type OptionsOf<Add extends (command: PlainCommand) => unknown> =
  ReturnType<Add> extends KithCommand<[], infer Options, never> ? Options : never

/** Creates a command with `--json`. */
export const newCommand = (
  environment: NodeJS.ProcessEnv,
  name: string,
  description: string,
): KithCommand<[], JsonOption, Result> => new KithCommand(environment, name, description, { hasJson: true })

/** Creates a command without `--json`: one that groups subcommands, or whose output is a stream. */
export const newPlainCommand = (environment: NodeJS.ProcessEnv, name: string, description: string): PlainCommand =>
  new KithCommand(environment, name, description)

/** Creates a command that lists rows, with `--format`. */
export const newListCommand = (
  environment: NodeJS.ProcessEnv,
  columns: Columns,
  name: string,
  description: string,
): KithCommand<[], FormatOption, Rows> => new KithCommand(environment, name, description, { columns })

const formats: readonly RowFormat[] = ['table', 'json', 'csv', 'ndjson']

/** commander passes the arguments, the options and the command. */
const optionsIn = <Options>(given: unknown[]): Options => given.at(-2) as Options

function withSettings<Part extends Option | Argument>(part: Part, settings: Settings = {}): Part {
  const { parse, choices, shown } = settings
  if (parse) part.argParser(parse as never)
  if (choices) part.choices(choices)
  if ('default' in settings) part.default(settings.default, shown)
  return part
}

/** The default of a repeatable option is an empty list. The help does not show it. */
function optionDescription(option: Option): string {
  const isEmptyList = Array.isArray(option.defaultValue) && option.defaultValueDescription === undefined
  return isEmptyList ? option.description : new Help().optionDescription(option)
}
