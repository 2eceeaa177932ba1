import { refuse } from '../../errors.ts'

/**
 * Reads `If-Sequence`: the number of a change that a read must show. Throws a Fault of 400 for anything else. Node joins two headers by a
 * comma, so they are refused too.
 */
export function readIfSequence(header: string): number {
  const sequence = Number(header)
  if (/^\d{1,16}$/.test(header) && Number.isSafeInteger(sequence)) return sequence
  return refuse('invalid_parameter', 'The header If-Sequence is malformed.', {
    details: [
      { path: '/If-Sequence', message: 'must be one number of a change, as X-Kith-Sequence of a write returned it' },
    ],
  })
}
