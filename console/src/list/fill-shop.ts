import { shop } from '../../../cli/seed/definitions.ts'
import { files, linesIn } from '../../../cli/seed/lines.ts'
import { sendEarlierVersions, sendFile } from '../../../cli/seed/send-lines.ts'
import { client } from '../app/client.ts'

/** The people of the sample shop. They determine all other counts. */
const people = 1_000

/** Fills the organization with the sample shop of `kith seed`. `progress` gets the completed fraction, from 0 to 1. */
export async function fillShop(progress: (done: number) => void): Promise<void> {
  const dataset = { people, seed: 1, consentTypeIds: await declareShop() }
  const lines = linesIn(dataset)
  let sent = 0
  await sendEarlierVersions(client, dataset)
  for (const file of files) {
    const counts = await sendFile(client, dataset, file, {
      progress: ({ received }) => progress((sent + received) / lines),
      // kith generates the lines. A definition of the organization may refuse some, and the list shows the others.
      refused: () => {},
    })
    sent += counts.received
    progress(sent / lines)
  }
}

/** Declares the definitions of the shop that the organization lacks, and returns the ids of its consent types. */
async function declareShop() {
  const { schema } = client
  const current = await schema.get()
  const has = <Each extends { key: string; owner?: string }>(all: readonly Each[], { key, owner }: Each) =>
    all.some(each => each.key === key && each.owner === owner)
  for (const stack of shop.stacks) if (!has(current.stacks, stack)) await schema.stacks.create(stack)
  const attributes = shop.attributes.filter(attribute => !has(current.attributes, attribute))
  if (attributes.length > 0) await schema.attributes.batch(attributes.map(({ state: _, ...body }) => body))
  for (const { state: _, ...type } of shop.consent_types)
    if (!has(current.consent_types, type)) await schema.consentTypes.create(type)
  const types = await schema.consentTypes.list().all()
  const idOf = (key: string) => types.find(type => type.key === key && type.state === 'active')!.id
  return { marketing: idOf('marketing'), surveys: idOf('surveys') }
}
