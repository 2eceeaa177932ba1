import type { Client, Definitions, ImportCounts, ImportRefusal, PersonBody } from '../../client/index.ts'
import { applyStep } from '../schema/apply.ts'
import { planPush, type Step } from '../schema/plan.ts'
import type { Dataset } from './dataset.ts'
import { shop } from './definitions.ts'
import { bodiesOf, earlierVersions, type FileName } from './lines.ts'

/** Declares what the shop needs, and answers the numbers of its consent types. Throws before it has changed anything. */
export async function declareShop(client: Client): Promise<Dataset['consentTypeIds']> {
  const standing = await client.schema.get()
  const marketing = marketingOf(standing)
  const { steps, faults } = planPush(shop, standing)
  if (faults.length > 0)
    throw new Error(`The shop does not fit into this organization: ${faults.map(({ message }) => message).join('; ')}.`)
  for (const step of steps.filter(isNeeded)) await applyStep(client, step)
  const surveys = (await client.schema.consentTypes.list()).find(({ key }) => key === 'surveys')!.id
  return { marketing, surveys }
}

/** Names, descriptions and indexes are the organization's own affair. */
const isNeeded = (step: Step) => step.action === 'create' || 'state' in step.fields || 'cardinality' in step.fields

function marketingOf({ consent_types }: Definitions): number {
  const type = consent_types.find(({ key, state }) => key === 'marketing' && state === 'active')
  if (type?.channels.length === 2 && !type.mandatory) return type.id
  throw new Error('The shop does not fit into this organization: it has no consent type marketing of both channels.')
}

// As many as the service takes.
const batchSize = 1_000

/**
 * Creates those who will have changed their minds as they were before, so that their consents have a history. Who is there
 * already is left alone. An import would not do: sent again, it would change everybody's mind again.
 */
export async function sendEarlierVersions({ people }: Client, world: Dataset): Promise<void> {
  let operations: { op: 'create'; body: PersonBody }[] = []
  const send = async () => {
    if (operations.length > 0) await people.batch(operations)
    operations = []
  }
  for (const body of earlierVersions(world)) {
    operations.push({ op: 'create', body })
    if (operations.length === batchSize) await send()
  }
  await send()
}

/** Imports one file of the shop; tells once a second how far it is, and what is refused. Answers what came of it. */
export async function sendFile(
  client: Client,
  world: Dataset,
  file: FileName,
  told: { progress(counts: ImportCounts): void; refused(refusal: ImportRefusal): void },
): Promise<ImportCounts> {
  const entities = file === 'people' ? client.people : client.stack(file)
  for await (const answer of entities.import(bodiesOf(world, file))) {
    if ('line' in answer) told.refused(answer)
    else if ('progress' in answer) told.progress(answer.progress)
    else if ('received' in answer) return answer
  }
  throw new Error(`The import of ${file} ended without a result.`)
}
