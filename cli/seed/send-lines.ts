import type { Client, ImportCounts, ImportRefusal, PersonBody } from '../../client/index.ts'
import type { Dataset } from './dataset.ts'
import { bodiesOf, earlierVersions, type FileName } from './lines.ts'

// The largest batch that the service accepts.
const batchSize = 1_000

/**
 * Creates the earlier versions of customers who change their consent answers, so that their consents have a history. A
 * batch of creates leaves existing customers unchanged, whereas an import would switch their answers in every run.
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
