import type { Client, Definitions, ImportCounts, ImportRefusal, PersonBody } from '../../client/index.ts'
import { applySteps, groupSteps } from '../schema/apply.ts'
import { planPush, type Step } from '../schema/plan.ts'
import type { Dataset } from './dataset.ts'
import { shop } from './definitions.ts'
import { bodiesOf, earlierVersions, type FileName } from './lines.ts'

/**
 * Declares the definitions of the shop and returns the ids of its consent types. If the organization has a conflicting
 * definition, it throws before it changes anything.
 */
export async function declareShop(client: Client): Promise<Dataset['consentTypeIds']> {
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

// The largest batch that the service accepts.
const batchSize = 1_000

/**
 * Creates the earlier versions of customers who change their consent answers, so that their consents have a history. A batch of
 * creates leaves existing customers unchanged. An import would change their answers back and forth in every run.
 */
export async function sendEarlierVersions({ people }: Client, dataset: Dataset): Promise<void> {
  let operations: { op: 'create'; body: PersonBody }[] = []
  const send = async () => {
    if (operations.length > 0) await people.batch(operations)
    operations = []
  }
  for (const body of earlierVersions(dataset)) {
    operations.push({ op: 'create', body })
    if (operations.length === batchSize) await send()
  }
  await send()
}

/** Imports one file of the shop. `progress` is called once a second, `refused` for each refused line. Returns the counts. */
export async function sendFile(
  client: Client,
  dataset: Dataset,
  file: FileName,
  callbacks: { progress(counts: ImportCounts): void; refused(refusal: ImportRefusal): void },
): Promise<ImportCounts> {
  const entities = client.entities(file)
  for await (const answer of entities.import(bodiesOf(dataset, file))) {
    if ('line' in answer) callbacks.refused(answer)
    else if ('progress' in answer) callbacks.progress(answer.progress)
    else if ('received' in answer) return answer
  }
  throw new Error(`The import of ${file} ended without a result. Run the command again.`)
}
