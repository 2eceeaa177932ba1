import { definitionsAt, peopleStackId } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import type { HandlerResult } from '../route/result.ts'
import { type Answers, answerKey, effectiveConsents } from './answers.ts'
import { throwNoPerson } from './history.ts'
import { readConsentsInForce } from './in-force-sql.ts'
import type { ConsentInForce } from './schema.ts'

type Row = { schema_version: number; sequence: number; refused: string[] } & (
  | { id: string; answers: Answers }
  | { id: null; answers: null }
)

/** Answers with the consents of one person, and which of them a refusal of the address takes away. Throws a Fault of 404. */
export async function answerConsentsInForce({ context, params, shown, signal }: Call): Promise<HandlerResult> {
  const { by, identifier } = personOf(params)
  const [row] = await context.db.query<Row>(readConsentsInForce[by], [context.organization_id, identifier], signal)
  const { id, schema_version, sequence, answers, refused } = row!
  if (id === null) return throwNoPerson()
  shown.add(peopleStackId, id)
  const { consent_types } = await definitionsAt(context, schema_version, signal)
  const items = effectiveConsents(answers, consent_types).map((consent): ConsentInForce => {
    const { consent_type_id, channel, state, source } = consent
    const isRefused = state && source !== 'mandatory' && refused.includes(answerKey(consent_type_id, channel))
    return isRefused ? { ...consent, address_refused: true } : consent
  })
  return { status: 200, data: { items, sequence } }
}
