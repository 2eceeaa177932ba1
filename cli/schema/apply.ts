import type { Client } from '../../client/index.ts'
import type { Create, Step } from './plan.ts'

/**
 * Applies one step. A push that was interrupted is completed by the next one, which plans again from the current schema.
 * Throws what the client throws, such as a KithError with `duplicate_entry` if another client has created the same definition.
 */
export async function applyStep({ schema }: Client, step: Step): Promise<void> {
  if (step.action === 'create') return create(schema, step)
  const patch = Object.fromEntries(Object.entries(step.fields).map(([field, { after }]) => [field, after]))
  if (step.kind === 'stack') await schema.stacks.patch(String(step.id), patch)
  if (step.kind === 'attribute') await schema.attributes.patch(Number(step.id), patch)
  if (step.kind === 'consent_type') await schema.consentTypes.patch(Number(step.id), patch)
}

async function create(schema: Client['schema'], step: Create) {
  if (step.kind === 'stack') await schema.stacks.create(step.definition)
  if (step.kind === 'attribute') {
    const { state, ...body } = step.definition
    await schema.attributes.create(body)
  }
  if (step.kind === 'consent_type') {
    const { state, ...body } = step.definition
    const { id } = await schema.consentTypes.create(body)
    // A new consent type is always active, so it is archived after it has its id.
    if (state === 'archived') await schema.consentTypes.patch(id, { state })
  }
}
