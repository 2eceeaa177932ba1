import type { Client } from '../../client/index.ts'
import type { Create, Step } from './plan.ts'

/**
 * Does one step. Steps say what is to stand, not how to get there, so a push that broke off is finished by the next one,
 * which plans anew. Throws what the client throws; a KithError of `duplicate_entry` where somebody else was faster.
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
    // What is made is active, and archived as soon as it has its number.
    if (state === 'archived') await schema.consentTypes.patch(id, { state })
  }
}
