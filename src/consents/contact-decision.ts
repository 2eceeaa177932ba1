import type { ConsentType } from '../organizations/definitions.ts'
import type { ContactReason, RecordedAnswer } from './schema.ts'

/** The event that suppresses an address, as a reason of a decision. */
export type SuppressedBy = Omit<Extract<ContactReason, { rule: 'suppressed' }>, 'rule'>

/**
 * A person at the moment of a decision: the address on the channel, or the change that deleted or erased the person.
 */
export type Contact =
  | { address: string | null; suppression?: SuppressedBy | undefined }
  | { gone: { rule: 'deleted' | 'erased'; sequence: number; at: string } }

/** The answer in force of an address, no matter which person gave it. */
export type AnswerOfAddress = Pick<AddressReason, 'answered_at' | 'sequence' | 'person_id'> & { state: boolean }

type AddressReason = Extract<ContactReason, { rule: 'address_answer' }>

/**
 * The facts of a decision. `person` is undefined if there never was one. `answer` is the one in force of the person,
 * and `addressAnswer` that of the address. A past decision does not know the latter.
 */
export type DecisionFacts = {
  person: Contact | undefined
  purpose: Pick<ConsentType, 'state' | 'mandatory' | 'default_state'>
  answer: RecordedAnswer | undefined
  addressAnswer: AnswerOfAddress | undefined
}

export type ContactDecision = { allowed: boolean; reasons: ContactReason[] }

/**
 * Decides whether a person may be written to. The reasons are all rules that forbid it, in a fixed order, or the one
 * rule that allows it.
 */
export function decideContact({ person, purpose, answer, addressAnswer }: DecisionFacts): ContactDecision {
  if (!person) return refusal({ rule: 'not_found' })
  if ('gone' in person) return refusal(person.gone)
  const against: ContactReason[] = []
  if (!person.address) against.push({ rule: 'no_address' })
  if (person.suppression) against.push({ rule: 'suppressed', ...person.suppression })
  if (purpose.state === 'archived') against.push({ rule: 'archived' })
  const consent = consentOf(purpose, answer)
  if (!isGranted(consent)) against.push(consent)
  // A refusal by the person itself is reported once.
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

/** A grant that waits for its confirmation does not count. */
function isGranted(consent: Consent): boolean {
  if (consent.rule === 'mandatory') return true
  return consent.state && !(consent.rule === 'answer' && consent.pending)
}
