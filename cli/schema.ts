import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { type Client, isKithError } from '../client/index.ts'
import type { Detail } from '../src/values/errors.ts'
import { newCommand, newPlainCommand, printResult } from './command.ts'
import { addConnectionOptions, type ConnectionOptions, connect } from './connection.ts'
import { pathOf, readFileOrNull, readInput } from './files.ts'
import { applySteps, groupSteps, indexOf, type StepGroup } from './schema/apply.ts'
import { parseSchemaFile, SchemaFileError, schemaFileText } from './schema/file.ts'
import { type Plan, planPush, type Step } from './schema/plan.ts'
import { planLines, stepText } from './schema/words.ts'
import { printStderr } from './terminal.ts'

type PullOptions = ConnectionOptions & { json?: true }
type DiffOptions = PullOptions & { archiveMissing?: true }
type PushOptions = DiffOptions & { dryRun?: true }

const defaultFile = 'kith.schema.json'

export function schemaCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Keeps stacks, attributes, consent types and segments in a file under version control; see docs/schema-file.md.'
  return newPlainCommand('schema', description, ['schema pull', 'schema diff', 'schema push --dry-run']).addSubcommands(
    environment,
    [pullCommand, diffCommand, pushCommand],
  )
}

function pullCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'Writes the schema of the organization to the file.'
  const command = newCommand('pull', description, [
    'schema pull',
    'schema pull - --url https://kith.example.org',
  ]).argument('[file]', 'The file to write, or - for standard output.', defaultFile)
  return addConnectionOptions(command).action((file: string, options: PullOptions) => pull(environment, file, options))
}

function diffCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Shows what push would do. Exits with 0 if organization and file are equal, 1 if they differ, 2 on an error.'
  const command = newCommand('diff', description, ['schema diff', 'schema diff shop.json --json'])
    .argument('[file]', 'The file, or - for standard input.', defaultFile)
    .option('--archive-missing', 'Show what push would do with this option.')
  return addConnectionOptions(command).action((file: string, options: DiffOptions) => diff(environment, file, options))
}

function pushCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Changes the schema of the organization to that of the file, and shows each step. Deletes nothing.'
  const command = newCommand('push', description, ['schema push --dry-run', 'schema push shop.json --archive-missing'])
    .argument('[file]', 'The file, or - for standard input.', defaultFile)
    .option('--dry-run', 'Show the steps, but change nothing.')
    .option('--archive-missing', 'Archive the attributes and consent types that the file does not name.')
  return addConnectionOptions(command).action((file: string, options: PushOptions) => push(environment, file, options))
}

async function pull(environment: NodeJS.ProcessEnv, name: string, options: PullOptions) {
  const { client } = await connect(environment, options, { scope: 'schema:read' })
  const schema = await client.schema.get()
  const text = schemaFileText(schema, await client.segments.list().all())
  const withTexts = schema.consent_types.filter(type => type.text_versions > 0).map(({ key }) => key)
  if (withTexts.length > 0)
    printStderr(
      `The file does not have the texts of the consent types ${withTexts.join(', ')}: see docs/schema-file.md.`,
    )
  if (name === '-') {
    process.stdout.write(text)
    return
  }
  const file = pathOf(environment, name)
  const written = (await readFileOrNull(file)) !== text
  if (written) await writeFile(file, text)
  printResult(options, { value: { file, written }, messages: [written ? `Wrote ${name}.` : `${name} is up to date.`] })
}

async function diff(environment: NodeJS.ProcessEnv, file: string, options: DiffOptions) {
  // As with diff(1), an error must not look like a difference, so it exits with 2.
  process.exitCode = 2
  const { client } = await connect(environment, options, { scope: 'schema:read' })
  const plan = await readPlan(environment, file, { ...options, client })
  printPlan(plan, options)
  process.exitCode = isEmpty(plan) ? 0 : 1
}

async function push(environment: NodeJS.ProcessEnv, file: string, options: PushOptions) {
  const { client } = await connect(environment, options, { scope: 'schema:read schema:write' })
  const plan = await readPlan(environment, file, { ...options, client })
  printPlan(plan, options)
  if (options.dryRun) return
  await apply(client, plan.steps)
  printStderr(plan.steps.length === 0 ? 'Nothing to do.' : `Steps done: ${plan.steps.length}.`)
}

async function apply(client: Client, steps: Step[]) {
  let done = 0
  for (const group of groupSteps(steps)) {
    try {
      await applySteps(client, group)
    } catch (error) {
      if (!isKithError(error)) throw error
      const reasons = [error.message, ...error.details.map(detail => reasonText(group, detail))].join(' ')
      const progress = `${done} of ${steps.length} steps are done.`
      throw new Error(`${groupText(group)}: ${reasons} ${progress} Run the command again to continue.`)
    }
    done += group.length
  }
}

const groupText = (group: StepGroup) => (group.length === 1 ? stepText(group[0]) : `+ ${group.length} attributes`)

/** A detail of an error. One of a batch is named by its attribute. */
function reasonText(group: StepGroup, { path, message }: Detail): string {
  const index = indexOf(path)
  return index === undefined ? `${path} ${message}.` : `${group[index]!.name} ${path} ${message}.`
}

type PlanOptions = { client: Client; archiveMissing?: true }

/** Throws a SchemaFileError if the file is invalid by itself or cannot be applied to this organization. */
async function readPlan(
  environment: NodeJS.ProcessEnv,
  file: string,
  { client, archiveMissing }: PlanOptions,
): Promise<Plan> {
  const declared = parseSchemaFile(await readInput(environment, file), file)
  const plan = planPush(declared, await client.schema.get(), archiveMissing, await client.segments.list().all())
  if (plan.faults.length > 0) throw new SchemaFileError(file, plan.faults)
  return plan
}

const isEmpty = ({ steps, missing }: Plan) => steps.length === 0 && missing.length === 0

function printPlan(plan: Plan, options: { json?: true }) {
  const { steps, missing } = plan
  printResult(options, { value: { equal: isEmpty(plan), steps, missing }, lines: planLines(plan) })
}
