import { parseExactly } from '../values/parse-json.ts'
import { profileFlags, readTexts } from '../values/profile-fields.ts'
import { type FieldAccess, mayRead } from './field-rights.ts'

/** The members of an entity that a role can close. */
const closable: ReadonlySet<string> = new Set([...readTexts, ...profileFlags, 'consents'])

/** The JSON of an entity, as a read shows it, without the fields that may not be read. Numbers stay exact. */
export function closeEntity(json: string, access: FieldAccess): string {
  const entity = parseExactly(json)
  if (typeof entity !== 'object' || entity === null) return json
  return JSON.stringify(closeValues(entity as Record<string, unknown>, access))
}

/** The values of an entity, or those that a change of the log has, without those that may not be read. `attribute_values` may be empty then. */
export function closeValues(values: Record<string, unknown>, access: FieldAccess): Record<string, unknown> {
  const shown = Object.entries(values).filter(([name]) => !closable.has(name) || mayRead(access, name))
  return Object.fromEntries(
    shown.map(([name, value]) => [
      name,
      name === 'attribute_values' && value ? closeAttributes(value as Record<string, unknown>, access) : value,
    ]),
  )
}

/** The attribute values whose keys may be read. */
export const closeAttributes = (values: Record<string, unknown>, access: FieldAccess): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([key]) => mayRead(access, `attribute_values.${key}`)))
