import { setTimeout } from 'node:timers/promises'
import { type Attribute, type AttributePatch, type Client, isKithError } from '../../client/index.ts'
import type { Create, Step } from './plan.ts'

/**
 * Applies one step. A push that was interrupted is completed by the next one, which plans again from the current schema.
 * Throws what the client throws, such as a KithError with `duplicate_entry` if another client has created the same definition.
 */
export async function applyStep(client: Client, step: Step): Promise<void> {
  const { schema, segments } = client
  if (step.action === 'create') return create(client, step)
  const patch = Object.fromEntries(Object.entries(step.fields).map(([field, { after }]) => [field, after]))
  if (step.kind === 'stack') await schema.stacks.patch(String(step.id), patch)
  if (step.kind === 'attribute') await patchAttribute(schema, Number(step.id), patch)
  if (step.kind === 'consent_type') await schema.consentTypes.patch(Number(step.id), patch)
  if (step.kind === 'segment') await segments.patch(String(step.id), patch)
}

async function create({ schema, segments }: Client, step: Create) {
  // The service checks the filter, whose type the file leaves open.
  if (step.kind === 'segment') await segments.create(step.definition as Parameters<typeof segments.create>[0])
  if (step.kind === 'stack') await schema.stacks.create(step.definition)
  if (step.kind === 'attribute') {
    const { state, ...body } = step.definition
    await whenIndexed(
      schema,
      () => schema.attributes.create(body),
      () => schema.attributes.create({ ...body, unique: false }),
    )
  }
  if (step.kind === 'consent_type') {
    const { state, ...body } = step.definition
    const { id } = await schema.consentTypes.create(body)
    // A new consent type is always active, so it is archived after it has its id.
    if (state === 'archived') await schema.consentTypes.patch(id, { state })
  }
}

async function patchAttribute(schema: Client['schema'], id: number, patch: AttributePatch) {
  await whenIndexed(
    schema,
    () => schema.attributes.patch(id, patch),
    () => schema.attributes.patch(id, { ...patch, unique: false }),
  )
}

const pollMs = 200

/**
 * Writes an attribute. If it is to be unique and its index is not ready, it is written without that, and becomes unique when kith has
 * filled the index.
 */
async function whenIndexed(
  { attributes }: Client['schema'],
  write: () => Promise<unknown>,
  writeWithout: () => Promise<Attribute>,
): Promise<void> {
  try {
    await write()
  } catch (error) {
    if (!isKithError(error) || error.status !== 409 || error.code !== 'invalid_parameter') throw error
    const { id } = await writeWithout()
    while ((await attributes.get(id)).index_state?.state === 'filling') await setTimeout(pollMs)
    await attributes.patch(id, { unique: true })
  }
}
