import { renameSync, writeFileSync } from 'node:fs'
import { type Change, type ChangeStream, isKithError } from '../client/index.ts'
import { operations, subjects } from '../src/organizations/logged-changes.ts'
import { parsedJson } from '../transfer/parsed-json.ts'
import { givenOf, wholeNumber } from './command.ts'
import { connect } from './connection.ts'
import { errorMessage } from './error-message.ts'
import { pathOf, readFileOrNull } from './files.ts'
import { newPlainCommand, type OptionsOf, type PlainCommand } from './kith-command.ts'
import { linksOption } from './questions/list-options.ts'
import { handleInterrupt } from './signal-handling.ts'
import { printStderr } from './terminal.ts'

export const followCommand = (environment: NodeJS.ProcessEnv) =>
  newPlainCommand(
    environment,
    'follow',
    'Prints the changes of an organization, one line of JSON for each, then each new one as it happens, until a signal ends it.',
  )
    .examples(
      'follow --subject person --state follow.json | jq -c .after',
      'follow --after 1204 --subject record --stack orders',
    )
    .with(followOptions)
    .action(options => follow(environment, options))

const followOptions = (command: PlainCommand) =>
  command
    .option('--after <number>', 'Begin after the change with this number. Default: the beginning.', {
      parse: wholeNumber(),
    })
    .option('--subject <subject...>', 'Only changes of these kinds (repeatable).', { choices: subjects })
    .option('--stack <key...>', 'Only records of these stacks (repeatable).')
    .option('--operation <operation...>', 'Only these operations (repeatable).', { choices: operations })
    .option('--segment <key...>', 'Only changes by which a person entered or left these segments (repeatable).')
    .option('--entity <identifier>', 'Only changes of the people and records with this identifier, or that had it.')
    .option(...linksOption)
    .option(
      '--state <file>',
      'Keep the position in this file. If the file exists, continue from it, and ignore --after.',
    )
    .connection()

type FollowOptions = OptionsOf<typeof followOptions>

/** The scopes of a token that the command creates itself. They show all subjects. */
const scope = 'changes:read people:read records:read schema:read webhooks:read'

/** The time to finish a line after a signal. The reader of the pipe may be stuck. */
const maxLineMs = 2_000

async function follow(environment: NodeJS.ProcessEnv, options: FollowOptions) {
  const stopping = new AbortController()
  const interrupt = handleInterrupt(() => {
    stopping.abort()
    setTimeout(() => process.exit(0), maxLineMs).unref()
  })
  try {
    await followUntil(stopping, environment, options)
  } finally {
    interrupt.end()
  }
}

async function followUntil(
  stopping: AbortController,
  environment: NodeJS.ProcessEnv,
  { state: file, after, subject, entity, ...options }: FollowOptions,
) {
  const path = file === undefined ? undefined : pathOf(environment, file)
  const position = path === undefined ? null : await readPosition(path, file!)
  const client = await connect(environment, options, { scope })
  const changes = client.changes.follow({
    ...(position ? { after: position.after, logId: position.log_id } : { after }),
    // `connect` does not get `subject`, because there it is the subject of a token.
    ...(subject && { subject }),
    ...(entity && { entity }),
    ...givenOf(options, 'stack', 'operation', 'segment', 'links'),
    signal: stopping.signal,
    onRetry: (error, pauseMs) =>
      printStderr(`${errorMessage(error)} Connecting again in ${(pauseMs / 1_000).toFixed(1)} s.`),
    onWarning: warning => printStderr(`Warning: ${warning}`),
  })
  try {
    if (path === undefined) await print(changes)
    else await printAndKeep(changes, path, stopping)
  } catch (error) {
    const isFromFile = position !== null || (file !== undefined && changes.logId !== undefined)
    if (!isFromFile || !isKithError(error) || error.status !== 410) throw error
    throw new Error(`${errorMessage(error)} The position is that of ${file}. Delete the file to begin again.`)
  }
}

/** Prints changes, and saves the position of the last printed change in a file. */
async function printAndKeep(changes: ChangeStream, path: string, stopping: AbortController) {
  let failure: Error | undefined
  const state = new StateFile(path, error => {
    failure = error
    stopping.abort()
  })
  // A closed pipe or a stuck reader ends the process at once. An unsaved position only repeats lines.
  const saveAtExit = () => {
    try {
      state.flush()
    } catch {}
  }
  process.on('exit', saveAtExit)
  try {
    await print(changes, ({ sequence }) => state.save({ log_id: changes.logId!, after: sequence }))
    // `last` may be past changes that did not match.
    if (changes.logId !== undefined) state.save({ log_id: changes.logId, after: changes.last })
  } finally {
    process.off('exit', saveAtExit)
    state.flush()
  }
  if (failure) throw failure
}

async function print(changes: ChangeStream, onPrinted: (change: Change) => void = () => {}) {
  for await (const change of changes) {
    await writeLine(JSON.stringify(change))
    onPrinted(change)
  }
}

/** Resolves when the pipe or file has taken the line. An error ends the process: see main.ts. */
function writeLine(line: string): Promise<void> {
  return new Promise(resolve => {
    process.stdout.write(`${line}\n`, error => {
      if (!error) resolve()
    })
  })
}

/** The position of a follower of the change log. */
type Position = { log_id: string; after: number }

// A write waits for the disk. At 100,000 changes, one write per change would take minutes.
const minIntervalMs = 100

/** The file with the position. Each save replaces the whole file, so it never holds half a position. */
class StateFile {
  readonly #path: string
  readonly #onError: (error: Error) => void
  #unsaved: Position | undefined
  #nextMs = 0
  #timer: NodeJS.Timeout | undefined

  /** `onError` is called if a later save fails. */
  constructor(path: string, onError: (error: Error) => void) {
    this.#path = path
    this.#onError = onError
  }

  /** Saves a position now, or within 100 ms if one was just saved. */
  save(position: Position): void {
    this.#unsaved = position
    const waitMs = this.#nextMs - performance.now()
    if (waitMs <= 0) this.flush()
    else this.#timer ??= setTimeout(() => this.#flushLater(), waitMs)
  }

  /** Saves the last position if it is not saved yet. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (!this.#unsaved) return
    const next = `${this.#path}.new`
    writeFileSync(next, `${JSON.stringify(this.#unsaved)}\n`, { flush: true })
    renameSync(next, this.#path)
    this.#unsaved = undefined
    this.#nextMs = performance.now() + minIntervalMs
  }

  #flushLater() {
    try {
      this.flush()
    } catch (error) {
      this.#onError(error as Error)
    }
  }
}

/**
 * Reads the position from a file. Null if the file does not exist. `name` is the name that the user typed, for the
 * error.
 */
async function readPosition(path: string, name: string): Promise<Position | null> {
  const text = await readFileOrNull(path)
  if (text === null) return null
  const position = parsedJson(text) as Partial<Position> | null | undefined
  if (typeof position?.log_id !== 'string' || !Number.isSafeInteger(position.after))
    throw new Error(`${name} is not a state file of kith follow. Delete it to begin again.`)
  return position as Position
}
