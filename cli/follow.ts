import { type Command, Option } from 'commander'
import { type Change, type ChangeStream, isKithError } from '../client/index.ts'
import { operations, subjects } from '../src/organizations/logged-changes.ts'
import { newPlainCommand, wholeNumber } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { errorMessage } from './error-message.ts'
import { pathOf } from './files.ts'
import { readPosition, StateFile } from './follow/state-file.ts'
import { linksOption } from './questions/list-options.ts'
import { handleInterrupt } from './signal-handling.ts'
import { printStderr } from './stderr.ts'

type FollowOptions = ConnectionOptions & {
  after?: number
  subject?: Change['subject'][]
  stack?: string[]
  operation?: Change['operation'][]
  segment?: string[]
  entity?: string
  links?: 'id'
  state?: string
}

export function followCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Prints the changes of an organization, one line of JSON for each, then each new one as it happens, until a signal ends it.'
  const command = newPlainCommand('follow', description, [
    'follow --subject person --state follow.json | jq -c .after',
    'follow --after 1204 --subject record --stack orders',
  ])
    .option('--after <number>', 'Begin after the change with this number. Default: the beginning.', wholeNumber())
    .addOption(new Option('--subject <subject...>', 'Only changes of these kinds (repeatable).').choices(subjects))
    .option('--stack <key...>', 'Only records of these stacks (repeatable).')
    .addOption(new Option('--operation <operation...>', 'Only these operations (repeatable).').choices(operations))
    .option('--segment <key...>', 'Only changes by which a person entered or left these segments (repeatable).')
    .option('--entity <identifier>', 'Only changes of the people and records with this identifier, or that had it.')
    .addOption(linksOption())
    .option(
      '--state <file>',
      'Keep the position in this file. If the file exists, continue from it, and ignore --after.',
    )
  return addConnectionOptions(command).action((options: FollowOptions) => follow(environment, options))
}

/** A token that the command creates itself sees every subject. */
const scope = 'changes:read people:read records:read schema:read webhooks:read'

/** After a signal, the line that is being printed has this time, because its reader may be stuck. */
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
  { state: file, after, subject, stack, operation, segment, entity, links, ...options }: FollowOptions,
) {
  const path = file === undefined ? undefined : pathOf(environment, file)
  const position = path === undefined ? null : await readPosition(path, file!)
  const { client } = await connect(environment, options, { scope })
  const changes = client.changes.follow({
    ...(position ? { after: position.after, logId: position.log_id } : { after }),
    ...(subject && { subject }),
    ...(stack && { stack }),
    ...(operation && { operation }),
    ...(segment && { segment }),
    ...(entity && { entity }),
    ...(links && { links }),
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

/** Prints changes, and keeps the position of what was printed in a file. */
async function printAndKeep(changes: ChangeStream, path: string, stopping: AbortController) {
  let failure: Error | undefined
  const state = new StateFile(path, error => {
    failure = error
    stopping.abort()
  })
  // A reader that closes the pipe, or is stuck, ends the process at once. An unsaved position only repeats lines.
  const saveAtExit = () => {
    try {
      state.flush()
    } catch {}
  }
  process.on('exit', saveAtExit)
  try {
    await print(changes, ({ sequence }) => state.save({ log_id: changes.logId!, after: sequence }))
    // It may be past changes that did not match.
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
