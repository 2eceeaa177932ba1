import { consentDefaults, type Question } from '../../consents/answers.ts'
import type { ConsentType } from '../../organizations/definitions.ts'
import { type Channel, channels } from '../../values/channels.ts'
import { coerceText } from '../../values/scalars.ts'
import { addressStates } from './grammar.ts'
import type { OperandFault } from './operand-types.ts'

/** The parts of a person's consent that a filter can test. */
export type ConsentOperand = { consent_type_id?: number; channel?: Channel; state?: boolean; pending?: boolean }

type Part = { isValid: (value: unknown) => boolean; message: string; coercedTo?: 'number' | 'boolean' }

const flag: Part = { isValid: value => typeof value === 'boolean', message: 'must be a boolean', coercedTo: 'boolean' }
const oneOf = (values: readonly unknown[]): Part => ({
  isValid: value => values.includes(value),
  message: `must be one of: ${values.join(', ')}`,
})

const consentType: Part = {
  isValid: value => Number.isInteger(value) && Number(value) >= 1,
  message: 'must be an integer of at least 1',
  coercedTo: 'number',
}
const ofChannels = oneOf(channels)
const parts: Record<string, Part> = { consent_type_id: consentType, channel: ofChannels, state: flag, pending: flag }

/** Converts the parts of a consent in a query string, which are texts, to their types. */
export function consentFromQuery(operand: Record<string, unknown>): Record<string, unknown> {
  const convert = ([name, value]: [string, unknown]) => {
    const type = Object.hasOwn(parts, name) ? parts[name]!.coercedTo : undefined
    return [name, type && typeof value === 'string' ? coerceText(value, type) : value]
  }
  return Object.fromEntries(Object.entries(operand).map(convert))
}

/** The first fault of a consent operand: a wrong type, or a consent that no person can have. Undefined if it is valid. */
export function consentFault(
  operand: Record<string, unknown>,
  consent_types: readonly ConsentType[],
): OperandFault | undefined {
  return partsFault(operand, parts) ?? unavailableConsentFault(operand as ConsentOperand, consent_types)
}

function partsFault(operand: Record<string, unknown>, parts: Record<string, Part>): OperandFault | undefined {
  for (const [name, value] of Object.entries(operand)) {
    const part = Object.hasOwn(parts, name) ? parts[name] : undefined
    if (!part) return { path: [name], message: 'unknown key' }
    if (!part.isValid(value)) return { path: [name], message: part.message }
  }
  return undefined
}

/** The fault of what a filter asks of addresses. Undefined if there is none. */
export const deliverabilityFault = (operand: Record<string, unknown>): OperandFault | undefined =>
  partsFault(operand, { channel: ofChannels, state: oneOf(addressStates) })

/** The question that `contactable` asks of people, or the first fault. Of an archived consent type, it may be asked: nobody matches. */
export function contactableQuestion(
  operand: Record<string, unknown>,
  consent_types: readonly ConsentType[],
): Question | OperandFault {
  const fault = partsFault(operand, { consent_type_id: consentType, channel: ofChannels })
  if (fault) return fault
  const missing = ['consent_type_id', 'channel'].find(name => operand[name] === undefined)
  if (missing) return { path: [missing], message: 'is required' }
  const { consent_type_id, channel } = operand as Question
  const type = consent_types.find(({ id }) => id === consent_type_id)
  if (!type) return { path: ['consent_type_id'], message: 'is not a consent type of the organization' }
  const available = type.channels.map(configured => configured.channel)
  if (available.includes(channel)) return { consent_type_id, channel }
  return { path: ['channel'], message: notAChannelOf(type, available) }
}

const notAChannelOf = ({ id }: ConsentType, available: readonly Channel[]) =>
  `is not a channel of consent type ${id}, which has: ${available.join(', ')}`

/** Reads show one consent for each active type and each of its channels. A filter can match no other consent. */
function unavailableConsentFault(
  { consent_type_id, channel }: ConsentOperand,
  consent_types: readonly ConsentType[],
): OperandFault | undefined {
  const type = consent_types.find(({ id }) => id === consent_type_id)
  if (consent_type_id !== undefined && !type)
    return { path: ['consent_type_id'], message: 'is not a consent type of the organization' }
  if (type?.state === 'archived')
    return { path: ['consent_type_id'], message: 'is an archived consent type, for which people have no state' }
  const available = consentDefaults(type ? [type] : consent_types).map(({ consent }) => consent.channel)
  if (channel === undefined || available.includes(channel)) return undefined
  if (!type) return { path: ['channel'], message: 'is not a channel of an active consent type' }
  return { path: ['channel'], message: notAChannelOf(type, available) }
}
