import type { BulkRequest, Client, Job, JobPreview, JobRefusal } from '../client/index.ts'
import { type JsonOption, printResult, type Result, UsageError, wholeNumber } from './command.ts'
import { confirm } from './confirm.ts'
import { connect } from './connection.ts'
import { readArgument, readJsonArgument } from './files.ts'
import { addUndo } from './imports.ts'
import { newPlainCommand, type OptionsOf, type PlainCommand } from './kith-command.ts'
import { firstOf } from './print-rows.ts'
import { formatCount, withProgress } from './progress.ts'
import { conditionsOfPeople, readCondition } from './questions/condition.ts'
import { warningLines } from './terminal.ts'

const scopes = 'people:read people:write records:read records:write'

/** Adds the options of all commands that start a job. */
const runOptions = (command: PlainCommand) =>
  conditionsOfPeople(command)
    .option(
      '--ids <ids>',
      'These internal identifiers, separated by commas or white space: a text, or @ and a file, or -.',
    )
    .option('--all', 'All of them.')
    .option('--dry-run', 'Change nothing, and print how many would change and who would be refused.')
    .option('--no-wait', 'Begin the job, and do not wait for its end.')
    .option('--quiet', 'Print no progress.')
    .connection()
    .yes()

type RunOptions = JsonOption & OptionsOf<typeof runOptions>

const owner = ['<people|stack_key>', 'Either people or the key of a stack.'] as const
const idOfJob = ['<id>', 'The id of the job, as bulk list prints it.'] as const
const columns = 'id owner op state actor started_at total done unchanged refused remaining undone_at'.split(' ')
const refusalColumns = ['id', 'external_id', 'error', 'message', 'details']

export function bulkCommand(environment: NodeJS.ProcessEnv) {
  const bulk = newPlainCommand(
    environment,
    'bulk',
    'Changes many people or records at once, as a job of the service: it goes on without this command, and can be undone.',
  ).examples(
    `bulk patch people --where attribute_values.city=Rome --body '{"attribute_values":{"city":"Milan"}}' --dry-run`,
    'bulk list',
    'bulk undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f',
  )
  bulk
    .add('patch', 'Sets or empties fields, or adds an answer to a consent with its evidence.')
    .examples(
      `bulk patch people --where attribute_values.city=Rome --body '{"attribute_values":{"city":"Milan"}}'`,
      'bulk patch orders --all --body @changes.json --yes',
    )
    .argument(...owner)
    .option('--body <json>', 'What each gets, as a PATCH has it: JSON, or @ and the name of a file, or -.', {
      required: true,
    })
    .with(runOptions)
    .action(async (owner, options) => {
      const body = (await readJsonArgument(environment, '--body', options.body)) as Record<string, unknown>
      return run(environment, owner, options, { op: 'patch', body })
    })
  bulk
    .add('delete', 'Deletes people or records. An undo brings them back.')
    .examples('bulk delete orders --where attribute_values.state=draft --dry-run')
    .argument(...owner)
    .with(runOptions)
    .action((owner, options) => run(environment, owner, options, { op: 'delete' }))
  bulk
    .add('erase', 'Erases people for good, with a certificate each.')
    .examples('bulk erase --segment gone --reason "End of the contracts of 2019" --dry-run')
    .option('--reason <text>', 'Why. It stays, so it must name nobody.', { required: true })
    .option('--records <which>', 'linked: also the records that are linked to one of them and to nobody else.', {
      choices: ['keep', 'linked'],
      default: 'keep',
    })
    .option('--override-hold', 'Erase people although they are under a legal hold.')
    .with(runOptions)
    .action(({ reason, records, overrideHold, ...options }) =>
      run(environment, 'people', options, {
        ...{ op: 'erase', reason, records },
        ...(overrideHold && { override_hold: true }),
      }),
    )
  bulk
    .addList(columns, 'list', 'Lists the jobs, newest first.')
    .examples('bulk list --limit 10')
    .option('--limit <count>', 'The most jobs to list.', { parse: wholeNumber(), default: 50 })
    .atService(scopes, ({ jobs }, { limit }) => firstOf(limit, 500, size => jobs.list({ size })))
  bulk
    .addList(refusalColumns, 'refused', 'Lists what a job was refused to change, and why.')
    .examples('bulk refused 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --format csv')
    .argument(...idOfJob)
    .atService(scopes, ({ jobs }, id) => jobs.refused(id, { size: 500 }))
  bulk
    .add('cancel', 'Ends a job. What it changed stays, until an undo.')
    .examples('bulk cancel 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f')
    .argument(...idOfJob)
    .atService(scopes, async (client, id) => {
      const value = await client.jobs.cancel(id)
      return { value, messages: [summaryOf(value)] }
    })
  const undo = bulk
    .add(
      'undo',
      'Takes back what a job changed and nothing has written since, and brings back what it deleted. Prints what it left. Erasures stay.',
    )
    .examples('bulk undo 01936f3e-0a5c-7c3e-9d0a-5b6f3c1d2e4f --dry-run')
    .argument(...idOfJob)
  addUndo(undo, 'job', scopes, ({ jobs }) => jobs)
  return bulk
}

async function run(
  environment: NodeJS.ProcessEnv,
  owner: string,
  options: RunOptions,
  change: BulkRequest['change'],
): Promise<Result> {
  const scope = change.op === 'erase' ? `${scopes} people:erase` : scopes
  const client = await connect(environment, options, { scope })
  const entities = client.entities(owner) as unknown as Pick<Client['people'], 'bulk' | 'previewBulk'>
  const request: BulkRequest = { ...(await readTarget(environment, options)), change }
  if (options.dryRun) {
    const value = await entities.previewBulk(request)
    return { value, lines: value.refusals.map(lineOf), messages: messagesOfPreview(value) }
  }
  await confirm(options, `${verbs[change.op]} them?`, async () =>
    messagesOfPreview(await entities.previewBulk(request)),
  )
  const begun = await entities.bulk(request)
  const value = options.wait ? await waitFor(client, begun, options) : begun
  const refusals = value.refused > 0 ? await client.jobs.refused(begun.id, { size: 500 }).all() : []
  const result = { value, lines: refusals.map(lineOf), messages: [summaryOf(value)] }
  if (value.state !== 'failed') return result
  printResult(options, result)
  throw new Error(`The job has failed: ${value.failure}`)
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

const messagesOfPreview = ({ total, tested, done, unchanged, refused, warnings }: JobPreview): string[] => [
  ...warningLines(warnings),
  `${formatCount(total)} selected, of which ${formatCount(tested)} ${tested === 1 ? 'was' : 'were'} tried: ${formatCount(done)} would change, ` +
    `${formatCount(unchanged)} ${unchanged === 1 ? 'is' : 'are'} so already, ${formatCount(refused)} would be refused`,
]

const summaryOf = ({ id, state, done, unchanged, refused, remaining }: Job) =>
  `Job ${id}: ${state}, ${formatCount(done)} changed, ${formatCount(unchanged)} unchanged, ${formatCount(refused)} refused, ` +
  `${formatCount(remaining)} not reached`
