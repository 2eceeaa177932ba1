import type { Client, Definitions, ImportCounts, ImportRefusal } from '../client/index.ts'
import { type JsonOption, type Result, wholeNumber } from './command.ts'
import { type ConnectionOptions, connect } from './connection.ts'
import { writeAll } from './files.ts'
import { newCommand } from './kith-command.ts'
import { withProgress } from './progress.ts'
import { applySteps, groupSteps } from './schema/apply.ts'
import { planPush, type Step } from './schema/plan.ts'
import type { Dataset } from './seed/dataset.ts'
import { shop } from './seed/definitions.ts'
import { bodiesOf, type FileName, files, linesIn } from './seed/lines.ts'
import { sendEarlierVersions, sendFile } from './seed/send-lines.ts'

type SeedOptions = ConnectionOptions & JsonOption & { people: number; seed: number }

const maxNumber = 999_999_999

export const seedCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(
    environment,
    'seed',
    'Fills an organization with a sample shop: people, companies, products, orders and visits; see docs/seed.md.',
  )
    .examples('seed', 'seed --people 100000 --seed 7 --json', 'seed --print people > people.ndjson')
    .option('--people <count>', 'The number of people. It determines all other counts.', {
      parse: wholeNumber(0, maxNumber),
      default: 1_000,
    })
    .option('--seed <number>', 'The seed. The same numbers produce the same shop, byte for byte.', {
      parse: wholeNumber(0, maxNumber),
      default: 1,
    })
    .option('--print <file>', 'Print one file as NDJSON, and send nothing.', { choices: files })
    .connection()
    .action(({ print: file, ...options }) => (file ? print(options, file) : seed(environment, options)))

async function print({ people, seed }: SeedOptions, file: FileName): Promise<void> {
  // The consent type ids of a new organization.
  const dataset = { people, seed, consentTypeIds: { marketing: 1, surveys: 2 } }
  await writeAll(
    process.stdout,
    bodiesOf(dataset, file).map(body => `${JSON.stringify(body)}\n`),
  )
}

const scope = 'people:write records:write schema:read schema:write'

async function seed(environment: NodeJS.ProcessEnv, options: SeedOptions): Promise<Result> {
  const { people, seed } = options
  const client = await connect(environment, options, { scope })
  const dataset: Dataset = { people, seed, consentTypeIds: await declareShop(client) }
  const done = await sendShop(client, dataset, options)
  if (done.some(([, { failed }]) => failed > 0)) process.exitCode = 1
  return { value: Object.fromEntries(done), messages: done.map(summaryOf) }
}

type Done = [FileName, ImportCounts]

/** Sends all files and shows the progress. */
async function sendShop(client: Client, dataset: Dataset, options: SeedOptions): Promise<Done[]> {
  const done: Done[] = []
  let current = 0
  const count = () => done.reduce((sum, [, { received }]) => sum + received, current)
  const readProgress = () => ({ count: count(), fraction: count() / linesIn(dataset) })
  return withProgress('lines', readProgress, options, async ({ print }) => {
    await sendEarlierVersions(client, dataset)
    for (const file of files) {
      const progress = ({ received }: ImportCounts) => {
        current = received
      }
      const counts = await sendFile(client, dataset, file, { progress, refused: refusalPrinter(file, print) })
      current = 0
      done.push([file, counts])
    }
    return done
  })
}

const maxPrintedRefusals = 5

/** Prints the first 5 refusals of a file. The summary has the number of all refusals. */
function refusalPrinter(file: FileName, print: (line: string) => void): (refusal: ImportRefusal) => void {
  let count = 0
  return ({ line, message, details }) => {
    if (++count > maxPrintedRefusals) return
    const reasons = details.map(detail => `; ${detail.path} ${detail.message}`).join('')
    print(`${file}, line ${line}: ${message}${reasons}`)
  }
}

function summaryOf([file, { created, updated, unchanged, failed }]: Done): string {
  const refused = failed > 0 ? `, ${failed} refused` : ''
  return `${file}: ${created} created, ${updated} updated, ${unchanged} unchanged${refused}`
}

/**
 * Declares the definitions of the shop and returns the ids of its consent types. Throws before any change if the
 * organization has a conflicting definition.
 */
async function declareShop(client: Client): Promise<Dataset['consentTypeIds']> {
  const current = await client.schema.get()
  const marketing = marketingOf(current)
  const { steps, faults } = planPush(shop, current)
  if (faults.length > 0)
    throw new Error(
      `The shop conflicts with the schema of this organization: ${faults.map(({ message }) => message).join('; ')}.`,
    )
  for (const group of groupSteps(steps.filter(isNeeded))) await applySteps(client, group)
  const surveys = (await client.schema.consentTypes.list().all()).find(({ key }) => key === 'surveys')!.id
  return { marketing, surveys }
}

/** Steps that change names, descriptions or indexes are skipped, because the organization may have chosen its own. */
const isNeeded = (step: Step) => step.action === 'create' || 'state' in step.fields || 'cardinality' in step.fields

function marketingOf({ consent_types }: Definitions): number {
  const type = consent_types.find(({ key, state }) => key === 'marketing' && state === 'active')
  if (type?.channels.length === 2 && !type.mandatory) return type.id
  throw new Error('The shop needs an active, not mandatory consent type marketing with the channels email and sms.')
}
