import type { Definitions } from '../organizations/definitions.ts'
import { type Standing, shownLinks } from './row.ts'

/** The attribute values of an entity as a read shows them: plain values, and links as their targets' external identifiers. */
export function shownAttributes({ row, links }: Standing, definitions: Definitions): Record<string, unknown> {
  if (links.size === 0) return row.attributes
  const shown: Record<string, unknown> = { ...row.attributes }
  for (const [attribute_id, targets] of links) {
    const attribute = definitions.attribute_by_id.get(attribute_id)
    if (attribute) shown[attribute.key] = shownLinks(attribute.cardinality, targets)
  }
  return shown
}

/** The entity tag of a version. */
export const entityTag = (version: number): string => `"${version}"`
