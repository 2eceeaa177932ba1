import { isRelationship } from '../../organizations/definitions.ts'
import { type Detail, Fault } from '../../values/errors.ts'
import type { TestedAttribute } from '../grammar/parse.ts'
import { Parameter } from './fragment.ts'
import { selectTerms } from './index-candidates.ts'

/** Adds advice to a 504 of a filter: which attributes to index, or which condition to add. Other errors are unchanged. */
export function withIndexAdvice(error: unknown, tested: readonly TestedAttribute[]): unknown {
  if (!(error instanceof Fault) || error.refusal.status !== 504) return error
  const details = tested.flatMap(adviceOn)
  const advice =
    details.length > 0
      ? 'Index the attributes that the details name.'
      : 'Add a condition that an index serves: on an indexed attribute, the email, or an identifier.'
  return new Fault({ ...error.refusal, message: `${error.refusal.message} ${advice}`, details }, { cause: error })
}

/** Advice on tests that an index would answer but none does. */
function adviceOn({ attribute, tests, path, segment }: TestedAttribute): Detail[] {
  if (attribute.index?.ready || attribute.type === 'json' || isRelationship(attribute)) return []
  // The tests are compiled as if the attribute had an index, to see whether one would help.
  const indexed = { ...attribute, index: { id: 0, ready: true, indexed: 0, total: 0 } }
  if (!selectTerms(indexed, tests, new Parameter(0))) return []
  const where = segment === undefined ? '' : `in the segment ${segment}, on ${attribute.key}: `
  const message = attribute.index
    ? 'the index of this attribute is still being filled: GET /v1/schema/attributes shows how far it is'
    : `this attribute is not indexed: PATCH /v1/schema/attributes/${attribute.id} {"indexed": true}`
  return [{ path, message: where + message }]
}
