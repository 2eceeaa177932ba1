import { createRefusal, createValueRefusal, type Detail, Fault, pointer, type Refusal } from '../../errors.ts'
import { emailKey, mobileKey } from '../match-keys.ts'
import type { EntityBody, MatchKind } from '../write-request.ts'

/** How a write recognizes its person: the values of its body, in the order in which they are tried. */
export type MatchPlan = { tried: readonly { kind: MatchKind; key: string }[] }

/**
 * Returns what a request wants people to be recognized by, or undefined if it is their external identifier alone. Throws a Fault of
 * 400 if something is named twice.
 */
export function readMatch(match: readonly MatchKind[] | undefined): readonly MatchKind[] | undefined {
  const repeated = match?.findIndex((kind, index) => match.indexOf(kind) !== index) ?? -1
  if (repeated !== -1) throw new Fault(createValueRefusal(pointer('match', repeated), 'is named twice'))
  return match && (match.length > 1 || match[0] !== 'external_id') ? match : undefined
}

/** Plans the recognition of a write's person. A kind whose value the body lacks, or whose phone is no number, is skipped. */
export function planMatch(match: readonly MatchKind[], body: EntityBody): MatchPlan {
  const tried = match.flatMap(kind => {
    const key = keyOf(kind, body)
    return key ? [{ kind, key }] : []
  })
  return { tried }
}

function keyOf(kind: MatchKind, body: EntityBody): string | null | undefined {
  if (kind === 'external_id') return body.external_id
  return kind === 'email' ? emailKey(body.email) : mobileKey(body.mobile_prefix, body.mobile_number)
}

const fieldOf = { external_id: 'external_id', email: 'email', mobile: 'mobile_number' } as const

/** The refusal of a write without a value that anybody could be recognized by. */
export function missingKeysRefusal(match: readonly MatchKind[], body: EntityBody): Refusal {
  const details = match.map((kind): Detail => {
    const path = pointer(fieldOf[kind])
    const isNoNumber = kind === 'mobile' && body.mobile_number
    return { path, message: isNoNumber ? notANumber : `is required for a match by ${kind}` }
  })
  return createRefusal(
    'invalid_parameter',
    'The request has no value to find a person by. Give one of those in `match`.',
    {
      details,
    },
  )
}

/** Completes "mobile_number …". */
export const notANumber =
  'is not a phone number with its country: give mobile_prefix, such as +39, or begin the number with +'

export const maxCandidates = 10

type Candidate = { id: string; external_id: string | null }

/** The refusal of a write whose key more than one person has. */
export function ambiguityRefusal(kind: MatchKind, candidates: readonly Candidate[]): Refusal {
  const path = pointer(fieldOf[kind])
  const details = candidates.slice(0, maxCandidates).map(({ id, external_id }) => ({
    path,
    message: `is also that of the person with the ${external_id === null ? `id ${id}` : `external_id ${external_id}`}`,
  }))
  const count = candidates.length > maxCandidates ? `More than ${maxCandidates}` : `${candidates.length}`
  return createRefusal(
    'duplicate_entry',
    `${count} people have this ${kind}. Name one by external_id, or merge them.`,
    { details },
  )
}
