import { effectiveConsents } from '../consents/answers.ts'
import { attributesText, stateText } from '../entities/represent.ts'
import type { Read } from '../entities/row.ts'
import type { Definitions } from '../organizations/definitions.ts'

/** A person as a read shows it, as JSON text: what the database gives as text is not parsed on its way. */
export function personText(read: Read, definitions: Definitions): string {
  return (
    `{"id":"${read.id}","external_id":${JSON.stringify(read.external_id)},${read.profile!.slice(1, -1)},` +
    `"consents":${consentsText(read, definitions)},"attribute_values":${attributesText(read, definitions)},` +
    `${stateText(read)}}`
  )
}

// Of those who have answered nothing, which most have not: the defaults, the same for all.
const defaults = new WeakMap<Definitions, string>()

function consentsText({ answers }: Read, definitions: Definitions): string {
  if (answers) return JSON.stringify(effectiveConsents(answers, definitions.consent_types))
  const known = defaults.get(definitions)
  if (known !== undefined) return known
  const text = JSON.stringify(effectiveConsents({}, definitions.consent_types))
  defaults.set(definitions, text)
  return text
}
