import type { Client, Definitions } from '../../client/index.ts'
import { applySteps, groupSteps } from '../schema/apply.ts'
import { planPush, type Step } from '../schema/plan.ts'
import type { Dataset } from './dataset.ts'
import { shop } from './definitions.ts'

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
