import { readFile, writeFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import type { Command } from 'commander'
import { type Client, isKithError } from '../client/index.ts'
import { answer, newCommand, newGroup } from './command.ts'
import { type ConnectionOptions, connect, pathOf, withConnection } from './connection.ts'
import { readIfThere } from './read-if-there.ts'
import { applyStep } from './schema/apply.ts'
import { parseSchemaFile, SchemaFileError, schemaFileText } from './schema/file.ts'
import { type Plan, planPush, type Step } from './schema/plan.ts'
import { planLines, stepText } from './schema/words.ts'
import { printStderr } from './session.ts'

type PullOptions = ConnectionOptions & { json?: true }
type DiffOptions = PullOptions & { archiveMissing?: true }
type PushOptions = DiffOptions & { dryRun?: true }

const defaultFile = 'kith.schema.json'

export function schemaCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'keep stacks, attributes and consent types in a file under version control: docs/schema-file.md'
  return newGroup('schema', description, ['schema pull', 'schema diff', 'schema push --dry-run'])
    .addCommand(pullCommand(environment))
    .addCommand(diffCommand(environment))
    .addCommand(pushCommand(environment))
}

function pullCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'write what the organization declares to the file'
  const command = newCommand('pull', description, [
    'schema pull',
    'schema pull - --url https://kith.example.org',
  ]).argument('[file]', 'the file to write, or - for standard output', defaultFile)
  return withConnection(command).action((file: string, options: PullOptions) => pull(environment, file, options))
}

function diffCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'show what push would do; ends with 0 when that is nothing, with 1 when it is something, with 2 on an error'
  const command = newCommand('diff', description, ['schema diff', 'schema diff shop.json --json'])
    .argument('[file]', 'the file, or - for standard input', defaultFile)
    .option('--archive-missing', 'as push would do with it')
  return withConnection(command).action((file: string, options: DiffOptions) => diff(environment, file, options))
}

function pushCommand(environment: NodeJS.ProcessEnv): Command {
  const description = 'make the organization declare what the file does, and show what that takes; deletes nothing'
  const command = newCommand('push', description, ['schema push --dry-run', 'schema push shop.json --archive-missing'])
    .argument('[file]', 'the file, or - for standard input', defaultFile)
    .option('--dry-run', 'show, and change nothing')
    .option('--archive-missing', 'archive the attributes and consent types that the file does not name')
  return withConnection(command).action((file: string, options: PushOptions) => push(environment, file, options))
}

async function pull(environment: NodeJS.ProcessEnv, given: string, options: PullOptions) {
  const { client } = await connect(environment, options, { scope: 'schema:read' })
  const text = schemaFileText(await client.schema.get())
  if (given === '-') {
    process.stdout.write(text)
    return
  }
  const file = pathOf(environment, given)
  const written = (await readIfThere(file)) !== text
  if (written) await writeFile(file, text)
  answer(options, { value: { file, written }, said: [written ? `wrote ${given}` : `${given} is up to date`] })
}

async function diff(environment: NodeJS.ProcessEnv, file: string, options: DiffOptions) {
  // As diff(1) has it: what could not be compared does not differ.
  process.exitCode = 2
  const { client } = await connect(environment, options, { scope: 'schema:read' })
  const plan = await planOf(environment, file, { ...options, client })
  show(plan, options)
  process.exitCode = isEmpty(plan) ? 0 : 1
}

async function push(environment: NodeJS.ProcessEnv, file: string, options: PushOptions) {
  const { client } = await connect(environment, options, { scope: 'schema:read schema:write' })
  const plan = await planOf(environment, file, { ...options, client })
  show(plan, options)
  if (options.dryRun) return
  await apply(client, plan.steps)
  printStderr(plan.steps.length === 0 ? 'nothing to do' : `${plan.steps.length} done`)
}

async function apply(client: Client, steps: Step[]) {
  for (const [done, step] of steps.entries())
    try {
      await applyStep(client, step)
    } catch (error) {
      if (!isKithError(error)) throw error
      const reasons = [error.message, ...error.details.map(({ path, message }) => `${path} ${message}.`)].join(' ')
      const again = 'The next push goes on from what stands then.'
      throw new Error(`${stepText(step)}: ${reasons} ${done} of ${steps.length} were done. ${again}`)
    }
}

type Planned = { client: Client; archiveMissing?: true }

/** Throws a SchemaFileError where the file cannot be used, be it by itself or for this organization. */
async function planOf(
  environment: NodeJS.ProcessEnv,
  file: string,
  { client, archiveMissing }: Planned,
): Promise<Plan> {
  const bytes = file === '-' ? await buffer(process.stdin) : await readFile(pathOf(environment, file))
  const declared = parseSchemaFile(bytes, file)
  const plan = planPush(declared, await client.schema.get(), archiveMissing)
  if (plan.faults.length > 0) throw new SchemaFileError(file, plan.faults)
  return plan
}

const isEmpty = ({ steps, missing }: Plan) => steps.length === 0 && missing.length === 0

function show(plan: Plan, options: { json?: true }) {
  const { steps, missing } = plan
  answer(options, { value: { equal: isEmpty(plan), steps, missing }, lines: planLines(plan) })
}
