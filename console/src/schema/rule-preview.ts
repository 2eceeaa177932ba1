import { type Attribute, type AttributePatch, attributeRules, type ProposedRules, type Violation } from '@kith/client'
import { client } from '../app/client.ts'

/** The preview ends its search when it has found this many. */
const maxFound = 1_000

/** The stored values that a change of rules would find. */
export type RulePreview = {
  found: Violation[]
  /** Whether more may follow. */
  isCut: boolean
}

/** The rules that a change turns on or moves, without `unique`, which the service checks by itself. */
export function proposedRules({ unique: _, ...patch }: AttributePatch): ProposedRules {
  const isProposed = (name: string, operand: unknown) =>
    name in attributeRules && operand !== null && operand !== false && operand !== undefined
  return Object.fromEntries(Object.entries(patch).filter(([name, operand]) => isProposed(name, operand)))
}

/** Runs the change without storing it, and searches the values that would break the new rules. Throws the refusal of the change. */
export async function previewRules(
  attribute: Attribute,
  patch: AttributePatch,
  mayReadValues: boolean,
): Promise<RulePreview | undefined> {
  await client.schema.attributes.patch(attribute.id, patch, { dryRun: true })
  const proposed = proposedRules(patch)
  if (Object.keys(proposed).length === 0) return { found: [], isCut: false }
  if (!mayReadValues) return undefined
  const found: Violation[] = []
  for await (const violation of client.schema.attributes.violations(attribute.id, { proposed, size: 500 })) {
    if (found.length === maxFound) return { found, isCut: true }
    found.push(violation)
  }
  return { found, isCut: false }
}
