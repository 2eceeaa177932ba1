import type { Definitions } from '../organizations/definitions.ts'
import { parseExactly } from '../parse-json.ts'
import { type Read, shownLinks } from './row.ts'

/**
 * The attribute values of an entity as a read shows them, as JSON text: plain values, and links as their targets'
 * external identifiers.
 */
export function attributesText({ attributes, links }: Read, definitions: Definitions): string {
  if (links.size === 0) return attributes
  const shown = parseExactly(attributes) as Record<string, unknown>
  for (const [attribute_id, targets] of links) {
    const attribute = definitions.attribute_by_id.get(attribute_id)
    if (attribute) shown[attribute.key] = shownLinks(attribute.cardinality, targets)
  }
  return JSON.stringify(shown)
}

/** The members that every entity ends with, as JSON text. */
export function stateText({ active, version, created_at, updated_at }: Read): string {
  const state = active ? 'active' : 'placeholder'
  return `"state":"${state}","version":${version},"created_at":"${created_at}","updated_at":"${updated_at}"`
}
