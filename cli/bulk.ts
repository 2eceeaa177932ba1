import { type Command, Option } from 'commander'
import type { BulkRequest, Client, Job, JobPreview, JobRefusal } from '../client/index.ts'
import { type JsonOption, newCommand, newPlainCommand, printResult, UsageError, wholeNumber } from './command.ts'
import { addYesOption, confirm, type YesOption } from './confirm.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { readArgument, readJsonArgument } from './files.ts'
import { addUndo } from './imports.ts'
import { formatCount, withProgress } from './progress.ts'
import { addConditionOptions, type ConditionOptions, readCondition } from './questions/condition.ts'
import { atService, firstOf, listAtService } from './service-commands.ts'

const scopes = 'people:read people:write records:read records:write'

export function bulkCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Changes many people or records at once, as a job of the service: it goes on without this command, and can be undone.'
  return newPlainCommand('bulk', description, [
    `bulk patch people --where attribute_values.city=Rome --body '{"attribute_values":{"city":"Milan"}}' --dry-run`,
    'bulk list',
    'bulk undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  ]).addSubcommands(environment, [
    patchCommand,
    deleteCommand,
    eraseCommand,
    listCommand,
    refusedCommand,
    cancelCommand,
    undoCommand,
  ])
}

type RunOptions = ConnectionOptions &
  ConditionOptions &
  YesOption & { ids?: string; all?: true; dryRun?: true; wait: boolean; quiet?: true; json?: true }

/** Adds the options that all commands which begin a job have. */
function addRunOptions(command: Command, isOfPeople = true): Command {
  addConditionOptions(command, isOfPeople)
    .option(
      '--ids <ids>',
      'These internal identifiers, separated by commas or white space: a text, or @ and a file, or -.',
    )
    .option('--all', 'All of them.')
    .option('--dry-run', 'Change nothing, and print how many would change and who would be refused.')
    .option('--no-wait', 'Begin the job, and do not wait for its end.')
    .option('--quiet', 'Print no progress.')
  return addYesOption(addConnectionOptions(command))
}

const owner = ['<people|stack_key>', 'Either people or the key of a stack.'] as const

function patchCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('patch', 'Sets or empties fields, or adds an answer to a consent with its evidence.', [
    `bulk patch people --where attribute_values.city=Rome --body '{"attribute_values":{"city":"Milan"}}'`,
    'bulk patch orders --all --body @changes.json --yes',
  ])
    .argument(...owner)
    .requiredOption('--body <json>', 'What each gets, as a PATCH has it: JSON, or @ and the name of a file, or -.')
  return addRunOptions(command).action(async (owner: string, options: RunOptions & { body: string }) => {
    const body = (await readJsonArgument(environment, '--body', options.body)) as Record<string, unknown>
    await run(environment, owner, options, { op: 'patch', body })
  })
}

function deleteCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('delete', 'Deletes people or records. An undo brings them back.', [
    'bulk delete orders --where attribute_values.state=draft --dry-run',
  ]).argument(...owner)
  return addRunOptions(command).action((owner: string, options: RunOptions) =>
    run(environment, owner, options, { op: 'delete' }),
  )
}

function eraseCommand(environment: NodeJS.ProcessEnv): Command {
  type Options = RunOptions & { reason: string; records: 'keep' | 'linked'; overrideHold?: true }
  const command = newCommand('erase', 'Erases people for good, with a certificate each.', [
    'bulk erase --segment gone --reason "End of the contracts of 2019" --dry-run',
  ])
    .requiredOption('--reason <text>', 'Why. It stays, so it must name nobody.')
    .addOption(
      new Option('--records <which>', 'linked: also the records that are linked to one of them and to nobody else.')
        .choices(['keep', 'linked'])
        .default('keep'),
    )
    .option('--override-hold', 'Erase people although they are under a legal hold.')
  return addRunOptions(command).action(({ reason, records, overrideHold, ...options }: Options) =>
    run(environment, 'people', options, {
      ...{ op: 'erase', reason, records },
      ...(overrideHold && { override_hold: true }),
    }),
  )
}

async function run(
  environment: NodeJS.ProcessEnv,
  owner: string,
  options: RunOptions,
  change: BulkRequest['change'],
): Promise<void> {
  const scope = change.op === 'erase' ? `${scopes} people:erase` : scopes
  const { client } = await connect(environment, options, { scope })
  const entities = client.entities(owner) as unknown as Pick<Client['people'], 'bulk' | 'previewBulk'>
  const request: BulkRequest = { ...(await readTarget(environment, options)), change }
  if (options.dryRun) {
    const value = await entities.previewBulk(request)
    return printResult(options, { value, lines: value.refusals.map(lineOf), messages: [summaryOfPreview(value)] })
  }
  await confirm(options, `${verbs[change.op]} them?`, async () => [
    summaryOfPreview(await entities.previewBulk(request)),
  ])
  const begun = await entities.bulk(request)
  const value = options.wait ? await waitFor(client, begun, options) : begun
  const refusals = value.refused > 0 ? await client.jobs.refused(begun.id, { size: 500 }).all() : []
  printResult(options, { value, lines: refusals.map(lineOf), messages: [summaryOf(value)] })
  if (value.state === 'failed') throw new Error(`The job has failed: ${value.failure}`)
}

const verbs = { patch: 'Change', delete: 'Delete', erase: 'Erase' } as const

async function readTarget(
  environment: NodeJS.ProcessEnv,
  options: RunOptions,
): Promise<Pick<BulkRequest, 'filter' | 'ids'>> {
  const filter = await readCondition(environment, options)
  const { ids, all } = options
  if ([filter, ids, all].filter(Boolean).length !== 1)
    throw new UsageError('Say which ones: by --where, --filter or --segment, by --ids, or --all.')
  if (ids === undefined) return { filter: { ...filter } }
  const text = (await readArgument(environment, ids)).toString()
  return { ids: text.split(/[\s,]+/).filter(Boolean) }
}

async function waitFor(client: Client, begun: Job, options: RunOptions): Promise<Job> {
  let last = begun
  const reading = () => ({
    count: last.total - last.remaining,
    fraction: last.total === 0 ? 1 : 1 - last.remaining / last.total,
    refused: last.refused,
  })
  return withProgress('entities', reading, options, async () => {
    for await (const job of client.jobs.follow(begun.id, { intervalMs: 500 })) last = job
    return last
  })
}

const lineOf = ({ external_id, id, error, message, details }: JobRefusal) =>
  [external_id ?? id, error, message, ...details.map(({ path, message }) => `${path} ${message}`)].join('\t')

const summaryOfPreview = ({ total, tested, done, unchanged, refused }: JobPreview) =>
  `${formatCount(total)} selected, of which ${formatCount(tested)} were tried: ${formatCount(done)} would change, ` +
  `${formatCount(unchanged)} are so already, ${formatCount(refused)} would be refused`

const summaryOf = ({ id, state, done, unchanged, refused, remaining }: Job) =>
  `Job ${id}: ${state}, ${formatCount(done)} changed, ${formatCount(unchanged)} unchanged, ${formatCount(refused)} refused, ` +
  `${formatCount(remaining)} not reached`

const columns = 'id owner op state actor started_at total done unchanged refused remaining undone_at'.split(' ')

function listCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('list', 'Lists the jobs, newest first.', ['bulk list --limit 10']).option(
    '--limit <count>',
    'The most jobs to list.',
    wholeNumber(),
    50,
  )
  return listAtService(environment, command, scopes, columns, ({ jobs }, { limit }: { limit: number }) =>
    firstOf(limit, 500, size => jobs.list({ size })),
  )
}

const idOfJob = ['<id>', 'The id of the job, as bulk list prints it.'] as const

function refusedCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newPlainCommand('refused', 'Lists what a job was refused to change, and why.', [
    'bulk refused 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --format csv',
  ]).argument(...idOfJob)
  const columns = ['id', 'external_id', 'error', 'message', 'details']
  return listAtService(environment, command, scopes, columns, ({ jobs }, id: string) => jobs.refused(id, { size: 500 }))
}

function cancelCommand(environment: NodeJS.ProcessEnv): Command {
  const command = newCommand('cancel', 'Ends a job. What it changed stays, until an undo.', [
    'bulk cancel 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  ]).argument(...idOfJob)
  return atService(environment, command, scopes, async (client, id: string, options: JsonOption) => {
    const value = await client.jobs.cancel(id)
    printResult(options, { value, messages: [summaryOf(value)] })
  })
}

function undoCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Takes back what a job changed and nothing has written since, and brings back what it deleted. Prints what it left. Erasures stay.'
  const command = newCommand('undo', description, [
    'bulk undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --dry-run',
  ]).argument(...idOfJob)
  return addUndo(environment, command, 'job', scopes, ({ jobs }) => jobs)
}
