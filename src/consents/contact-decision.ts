import type { ConsentType } from '../organizations/definitions.ts'
import type { ContactReason, RecordedAnswer } from './schema.ts'

/** A person at the moment of a decision: the address on the channel, or the change that deleted or erased the person. */
export type Contact =
  | { address: string | null }
  | { gone: { rule: 'deleted' | 'erased'; sequence: number; at: string } }

/** The answer of an address: of all that were given for it, by anyone, the one that stands. */
export type AnswerOfAddress = Pick<AddressReason, 'answered_at' | 'sequence' | 'person_id'> & { state: boolean }

type AddressReason = Extract<ContactReason, { rule: 'address_answer' }>

/**
 * The facts of a decision. `person` is undefined if there never was one. `answer` is the one that stands, and `addressAnswer` that of the address. A
 * past decision does not know that one.
 */
export type DecisionFacts = {
  person: Contact | undefined
  purpose: Pick<ConsentType, 'state' | 'mandatory' | 'default_state'>
  answer: RecordedAnswer | undefined
  addressAnswer: AnswerOfAddress | undefined
}

export type ContactDecision = { allowed: boolean; reasons: ContactReason[] }

/**
 * Decides whether a person may be written to. The reasons are all rules that forbid it, in a fixed order, or the one rule
 * that allows it.
 */
export function decideContact({ person, purpose, answer, addressAnswer }: DecisionFacts): ContactDecision {
  if (!person) return refusal({ rule: 'not_found' })
  if ('gone' in person) return refusal(person.gone)
  const against: ContactReason[] = []
  if (!person.address) against.push({ rule: 'no_address' })
  if (purpose.state === 'archived') against.push({ rule: 'archived' })
  const consent = consentOf(purpose, answer)
  if (!isGranted(consent)) against.push(consent)
  // The refusal of the person is told once.
  if (addressAnswer && !addressAnswer.state && !purpose.mandatory && addressAnswer.sequence !== answer?.sequence)
    against.push({ rule: 'address_answer', ...addressAnswer })
  return against.length > 0 ? refusal(...against) : { allowed: true, reasons: [consent] }
}

const refusal = (...reasons: ContactReason[]): ContactDecision => ({ allowed: false, reasons })

type Consent = Extract<ContactReason, { rule: 'answer' | 'default' }> | { rule: 'mandatory' }

function consentOf(
  { mandatory, default_state }: DecisionFacts['purpose'],
  answer: RecordedAnswer | undefined,
): Consent {
  if (mandatory) return { rule: 'mandatory' }
  return answer ? { rule: 'answer', ...answer } : { rule: 'default', state: default_state }
}

/** A grant that waits for its confirmation is none yet. */
function isGranted(consent: Consent): boolean {
  if (consent.rule === 'mandatory') return true
  return consent.state && !(consent.rule === 'answer' && consent.pending)
}
