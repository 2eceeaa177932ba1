import { writeFile } from 'node:fs/promises'
import { type Client, isKithError } from '../client/index.ts'
import type { Detail } from '../src/values/errors.ts'
import { printResult, type Result } from './command.ts'
import { connect } from './connection.ts'
import { pathOf, readFileOrNull, readInput } from './files.ts'
import { newPlainCommand } from './kith-command.ts'
import { applySteps, groupSteps, indexOf, type StepGroup } from './schema/apply.ts'
import { parseSchemaFile, SchemaFileError, schemaFileText } from './schema/file.ts'
import { type Plan, planPush, type Step } from './schema/plan.ts'
import { planLines, stepText } from './schema/words.ts'
import { printStderr } from './terminal.ts'

const defaultFile = 'kith.schema.json'

export function schemaCommand(environment: NodeJS.ProcessEnv) {
  const schema = newPlainCommand(
    environment,
    'schema',
    'Keeps stacks, attributes, consent types and segments in a file under version control; see docs/schema-file.md.',
  ).examples('schema pull', 'schema diff', 'schema push --dry-run')
  schema
    .add('pull', 'Writes the schema of the organization to the file.')
    .examples('schema pull', 'schema pull - --url https://kith.example.org')
    .argument('[file]', 'The file to write, or - for standard output.', { default: defaultFile })
    .atService('schema:read', (client, file) => pull(environment, client, file))
  schema
    .add(
      'diff',
      'Shows what push would do. Exits with 0 if organization and file are equal, 1 if they differ, 2 on an error.',
    )
    .examples('schema diff', 'schema diff shop.json --json')
    .argument('[file]', 'The file, or - for standard input.', { default: defaultFile })
    .option('--archive-missing', 'Show what push would do with this option.')
    .connection()
    .action(async (file, options) => {
      // As with diff(1), an error must not look like a difference, so it exits with 2.
      process.exitCode = 2
      const client = await connect(environment, options, { scope: 'schema:read' })
      const plan = await readPlan(environment, file, { ...options, client })
      process.exitCode = isEmpty(plan) ? 0 : 1
      return resultOf(plan)
    })
  schema
    .add('push', 'Changes the schema of the organization to that of the file, and shows each step. Deletes nothing.')
    .examples('schema push --dry-run', 'schema push shop.json --archive-missing')
    .argument('[file]', 'The file, or - for standard input.', { default: defaultFile })
    .option('--dry-run', 'Show the steps, but change nothing.')
    .option('--archive-missing', 'Archive the attributes and consent types that the file does not name.')
    .atService('schema:read schema:write', async (client, file, options) => {
      const plan = await readPlan(environment, file, { ...options, client })
      printResult(options, resultOf(plan))
      if (options.dryRun) return
      await apply(client, plan.steps)
      printStderr(plan.steps.length === 0 ? 'Nothing to do.' : `Steps done: ${plan.steps.length}.`)
    })
  return schema
}

async function pull(environment: NodeJS.ProcessEnv, client: Client, name: string): Promise<Result | undefined> {
  const schema = await client.schema.get()
  const text = schemaFileText(schema, await client.segments.list().all())
  const withTexts = schema.consent_types.filter(type => type.text_versions > 0).map(({ key }) => key)
  if (withTexts.length > 0)
    printStderr(
      `The file does not have the texts of the consent types ${withTexts.join(', ')}: see docs/schema-file.md.`,
    )
  if (name === '-') {
    process.stdout.write(text)
    return undefined
  }
  const file = pathOf(environment, name)
  const written = (await readFileOrNull(file)) !== text
  if (written) await writeFile(file, text)
  return { value: { file, written }, messages: [written ? `Wrote ${name}.` : `${name} is up to date.`] }
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

/** Describes a detail of an error. In a batch, it begins with the name of the attribute. */
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

const resultOf = (plan: Plan): Result => {
  const { steps, missing } = plan
  return { value: { equal: isEmpty(plan), steps, missing }, lines: planLines(plan) }
}
